"""SecAdmin's work in Kafka: topics, principals, ACLs, and the fence after a revocation."""

"""What SecAdmin does in Kafka: topics, principals, ACLs and the fence behind a revocation."""

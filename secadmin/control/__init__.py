"""What the service does, without HTTP: objects, grants, accesses, and their effect on Kafka."""

"""What the command line does as a Kafka client: files of accesses, settings, reading, sending."""

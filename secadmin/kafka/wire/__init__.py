"""Requests of the Kafka protocol that client libraries cannot send to a chosen broker.

The fence's proof needs a fetch that goes once to a chosen broker, and needs to see its one answer.
A consumer of librdkafka fetches again by itself and does not report it. The proof that an ACL is
gone needs each broker's own list of ACLs. An administrative client asks only one of the brokers.
"""

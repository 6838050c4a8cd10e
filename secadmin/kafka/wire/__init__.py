"""Three requests of the Kafka protocol that client libraries do not let one send to one broker.

The fence's proof needs a fetch that is sent once, to a broker of our choice, and whose one answer
is seen (a consumer of librdkafka fetches again by itself, and does not tell); the proof that an ACL
is gone needs each broker's own list of ACLs (an administrative client asks any one broker).
"""

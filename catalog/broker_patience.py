"""How long a sender and an engine wait for the answer of a broker.

What a broker that hangs has not answered is sent again to the one that takes over. By default a
client of Kafka waits for half a minute, or for a whole one, and then many records are late. Both
send so that nothing is written twice.
"""

ANSWER_MS = 10_000

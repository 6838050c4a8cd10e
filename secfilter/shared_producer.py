"""The producer that the tasks of one query share. Spark keeps it in a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

_CONNECTOR = "org.apache.spark.sql.kafka010"


@contextmanager
def shared_producer(spark: SparkSession, sink: Mapping[str, str]) -> Iterator[Any]:
    """The producer of the query whose Kafka sink has these options."""
    jvm: Any = spark._jvm
    options = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(sink))
    known = _singleton(jvm, "org.apache.spark.sql.catalyst.util.CaseInsensitiveMap").apply(options)
    provider = _singleton(jvm, f"{_CONNECTOR}.KafkaSourceProvider")
    pool = _singleton(jvm, f"{_CONNECTOR}.producer.InternalKafkaProducerPool")
    # The pool gives the same producer to all tasks with the same settings.
    shared = pool.acquire(provider.kafkaParamsForProducer(known))
    try:
        yield shared.producer()
    finally:
        pool.release(shared)


def connected(spark: SparkSession, sink: Mapping[str, str], topic: str) -> None:
    """Make the producer of that sink, and let it connect to the broker that has the topic.

    Raises what Kafka's client raises. Then the query finds out by itself.
    """
    with shared_producer(spark, sink) as producer:
        producer.partitionsFor(topic)


def write_out(spark: SparkSession, sink: Mapping[str, str]) -> bool:
    """Wait until Kafka has answered for each record that tasks have handed on so far.

    Returns whether the producer has written every record since it was made.
    """
    with shared_producer(spark, sink) as producer:
        producer.flush()
        return _errors(spark, producer, sink["kafka.client.id"]) == 0


def _errors(spark: SparkSession, producer: Any, client: str) -> float:
    """The number of records that the producer gave up, or that Kafka refused for good."""
    jvm: Any = spark._jvm
    tags = jvm.java.util.HashMap()
    tags.put("client-id", client)
    name = jvm.org.apache.kafka.common.MetricName
    found = producer.metrics().get(name("record-error-total", "producer-metrics", "", tags))
    return float(found.metricValue())


def _singleton(jvm: Any, name: str) -> Any:
    """A Scala object."""
    place = jvm
    for part in (*f"{name}$".split("."), "MODULE$"):
        place = getattr(place, part)
    return place

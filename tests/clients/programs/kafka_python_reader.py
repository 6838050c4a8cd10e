"""kafka-python: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from kafka import KafkaConsumer
from kafka.errors import TopicAuthorizationFailedError

FOLDER = Path(sys.argv[1])


def main() -> None:
    """Read until the process is ended."""
    lines = (FOLDER / "librdkafka.conf").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    consumer = KafkaConsumer(
        bootstrap_servers=settings["bootstrap.servers"],
        security_protocol="SASL_SSL",
        ssl_cafile=str(FOLDER / "ca.pem"),
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username=settings["sasl.username"],
        sasl_plain_password=settings["sasl.password"],
        group_id=settings["group.id"],
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        metadata_max_age_ms=1000,
    )
    pattern = json.loads((FOLDER / "subscription.json").read_text())["topic_pattern"]
    consumer.subscribe(pattern=pattern)
    while True:
        try:
            taken = consumer.poll(timeout_ms=500)
        except TopicAuthorizationFailedError as error:
            print("error", repr(error), sep="\t", flush=True)
            # It would ask for the denied topic again and again, and never look for others.
            consumer.unsubscribe()
            consumer.subscribe(pattern=pattern)
            time.sleep(1)
            continue
        for record in (record for records in taken.values() for record in records):
            if not any(name == "fence" for name, _ in record.headers):
                print("record", record.topic, record.value.decode(), sep="\t", flush=True)


main()

"""confluent-kafka: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message

FOLDER = Path(sys.argv[1])
PATTERN = json.loads((FOLDER / "subscription.json").read_text())["topic_pattern"]


def show(message: Message) -> None:
    """Print a record; a fence is none."""
    if "fence" not in dict(message.headers() or []):
        print("record", message.topic(), (message.value() or b"").decode(), sep="\t", flush=True)


def main() -> None:
    """Read until the process is ended."""
    lines = (FOLDER / "librdkafka.conf").read_text().splitlines()
    consumer = Consumer(dict(line.split("=", 1) for line in lines))
    consumer.subscribe([PATTERN])
    denied_at = None
    while True:
        message = consumer.poll(0.5)
        error = message.error() if message else None
        if error:
            print("error", error.str(), sep="\t", flush=True)
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                denied_at = time.monotonic()
        elif message:
            show(message)
        if denied_at and time.monotonic() > denied_at + 1:
            # A partition that was denied while it was assigned is read again only so.
            consumer.subscribe([PATTERN])
            denied_at = None


main()

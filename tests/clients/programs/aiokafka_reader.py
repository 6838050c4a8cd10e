"""aiokafka: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import TopicAuthorizationFailedError

FOLDER = Path(sys.argv[1])


async def main() -> None:
    """Read until the process is ended."""
    lines = (FOLDER / "librdkafka.conf").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings["bootstrap.servers"],
        security_protocol="SASL_SSL",
        ssl_context=ssl.create_default_context(cafile=FOLDER / "ca.pem"),
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username=settings["sasl.username"],
        sasl_plain_password=settings["sasl.password"],
        group_id=settings["group.id"],
        auto_offset_reset="earliest",
        metadata_max_age_ms=1000,
    )
    pattern = json.loads((FOLDER / "subscription.json").read_text())["topic_pattern"]
    consumer.subscribe(pattern=pattern)
    await consumer.start()
    while True:
        try:
            taken = await consumer.getmany(timeout_ms=500)
        except TopicAuthorizationFailedError as error:
            print("error", repr(error), sep="\t", flush=True)
            await asyncio.sleep(1)
            continue
        for record in (record for records in taken.values() for record in records):
            if not any(name == "fence" for name, _ in record.headers):
                print("record", record.topic, record.value.decode(), sep="\t", flush=True)


asyncio.run(main())

"""The control service: `python -m secadmin --settings FILE`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import uvicorn

from catalog.audit_key import AuditKey
from catalog.bootstrap import ensure_initialised
from catalog.durability import durability_warnings
from catalog.engine_rights import give_engines_rights
from catalog.error_places import KindsAlone
from catalog.errors import InvalidInput, PlatformError, Unavailable
from catalog.leases import Leases
from catalog.passwords import Passwords
from catalog.settings import Settings
from catalog.store import Catalog
from secadmin.control.alignment import TOPIC_PATIENCE, Alignment, TopicLocks
from secadmin.control.anchors import Anchors, Sender
from secadmin.control.head_file import HeadFile
from secadmin.control.platform import Platform
from secadmin.control.readmission import Readmission, readmit
from secadmin.control.refills import refill
from secadmin.control.upkeep import Upkeep, start_up
from secadmin.control.worker_thread import WorkerThread
from secadmin.kafka.cluster import Cluster
from secadmin.kafka.parked import ParkedTopics
from secadmin.kafka.refill_topics import RefillTopics
from secadmin.service.app import create_app
from secadmin.service.door import Door, tls_context
from secadmin.service.open_files import raise_limit

log = logging.getLogger("secadmin")
Result = TypeVar("Result")
# Longer than any fence takes, so that no service that is alive loses a lease.
TOPIC_LEASE = timedelta(seconds=60)
START_RETRY_S = 1.0


def topic_locks(leases: Leases) -> TopicLocks:
    """Topics' locks across all services that share the catalog."""

    def hold(topics: Collection[str], wait: timedelta) -> AbstractContextManager[None]:
        return leases.hold(*(f"topic {topic}" for topic in topics), wait=wait)

    return hold


def build_platform(settings: Settings, passwords: Passwords | None = None) -> Platform:
    """Put the parts together.

    Raises Unavailable where the database or Kafka is away, and InvalidInput if another SecAdmin has
    made the audit log with another key.
    """
    key = AuditKey.load(settings.secadmin.audit_key_file)
    catalog = Catalog(settings.catalog_url, key)
    passwords = passwords or Passwords()
    ensure_initialised(catalog, settings.secadmin.first_password_file, passwords)
    if not catalog.has_audit_key():
        raise InvalidInput(
            f"the audit log was made with another key than {settings.secadmin.audit_key_file}: "
            "give all SecAdmins of a database the same audit_key_file"
        )
    for warning in durability_warnings(catalog.engine):
        log.warning("%s", warning)
    give_engines_rights(catalog.engine, settings.engine_catalogs)

    leases = Leases(catalog, TOPIC_LEASE)
    locks = topic_locks(leases)
    cluster = Cluster(
        settings.kafka, lambda topic: locks([topic], TOPIC_PATIENCE), settings.user_limits
    )
    places = (HeadFile(settings.secadmin.audit_heads_file), cluster.head_topic)
    anchors = Anchors([Sender(each, key, catalog.clock, catalog.newest_head) for each in places])
    catalog.tell_heads(anchors.offer)
    return Platform(
        catalog=catalog,
        kafka=cluster,
        alignment=Alignment(catalog, cluster, locks, catalog.clock),
        passwords=passwords,
        bootstrap=settings.kafka.users_bootstrap,
        ca_pem=settings.kafka.ca_file.read_text(),
        clock=catalog.clock,
        anchors=anchors,
        limits=settings.limits,
        user_limits=settings.user_limits,
        spaces=settings.secfilter.spaces,
        idle_class=timedelta(seconds=settings.secadmin.idle_class_s),
        live=leases.live,
    )


def serve(settings: Settings) -> None:
    """Serve until stopped. What was decided earlier is carried out before the first request."""
    raise_limit()
    # uvicorn sends itself the signal that ended it once more. By default that would end the process
    # before it has given back what other services wait for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    platform = _patiently(lambda: build_platform(settings))
    # From now on other services know that this one is alive, and it sees who of them is.
    life = WorkerThread("life", platform.live)
    life.start()
    # The same platform each time: it finds out meanwhile whose leases are left from a crash.
    _patiently(lambda: start_up(platform))
    upkeep = Upkeep(platform)
    upkeep.start()
    parked = partial(readmit, Readmission(platform), lambda: ParkedTopics(settings.kafka))
    readmission = WorkerThread("readmission", parked)
    readmission.start()
    refills = WorkerThread(
        "refills", partial(refill, platform, lambda: RefillTopics(settings.kafka))
    )
    refills.start()
    platform.anchors.start()
    where = settings.secadmin
    # It writes an error of a request once more, behind the platform's own line.
    logging.getLogger("uvicorn.error").addFilter(KindsAlone())
    door = Door(tls_context(str(where.certificate_file), str(where.key_file)))
    try:
        uvicorn.run(
            create_app(platform),
            host=where.host,
            port=where.port,
            # TLS is the door's. uvicorn calls this as it would call a class.
            http=cast(type[asyncio.Protocol], door.protocol),
            ws="none",
            # Paths name objects and principals: who did what is the audit log's to tell.
            access_log=False,
            server_header=False,
            log_level="warning",
            timeout_graceful_shutdown=10,
        )
    finally:
        refills.close()
        readmission.close()
        upkeep.close()
        platform.anchors.close()
        life.close()
        platform.catalog.close()


def _patiently(step: Callable[[], Result]) -> Result:
    """Wait for database and Kafka: they may be starting, too."""
    while True:
        try:
            return step()
        except Unavailable as failure:
            log.warning("not serving yet: %s", failure)
            time.sleep(START_RETRY_S)


def main() -> int:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m secadmin", description="SecAdmin, the service")
    parser.add_argument("--settings", type=Path, required=True, help="settings file (TOML)")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        serve(Settings.load(arguments.settings))
    except PlatformError as failure:
        print(f"secadmin: {failure}", file=sys.stderr)
        return failure.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

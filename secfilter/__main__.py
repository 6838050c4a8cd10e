"""The runner's process: `python -m secfilter --settings FILE`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from catalog.errors import PlatformError
from catalog.settings import Settings
from catalog.store import Catalog
from secfilter.after_commit import Drains
from secfilter.catalog_ledger import CatalogLedger
from secfilter.checkpoint import Checkpoints
from secfilter.engine_process import end_with, engine_process
from secfilter.kafka_options import kafka_options
from secfilter.lock import lock_engine, runner_lock
from secfilter.pace import OWN, pace_of
from secfilter.positions import Positions
from secfilter.queries import Engine
from secfilter.runner import Runner
from secfilter.session import build_session
from secfilter.topic_watch import TopicWatch

READY_FILE = "SECFILTER_READY_FILE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    parser = argparse.ArgumentParser(prog="secfilter", description="The data plane's runner.")
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # Checkpoints and state hold data: Spark's process inherits this.
    os.umask(0o077)
    try:
        settings = Settings.load(given.settings)
        with runner_lock(settings.secfilter.checkpoints):
            _serve(settings)
    except PlatformError as error:
        print(f"secfilter: {error.detail}", file=sys.stderr)
        return error.exit_code
    return 0


def _serve(settings: Settings) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    own = settings.secfilter
    spark_options = {k: v for k, v in own.options.items() if not k.startswith(OWN)}
    spark = build_session(own.master, own.jars, spark_options)
    try:
        end_with(engine_process(spark), stop)
        held = lock_engine(spark, own.checkpoints)
        positions = Positions(settings.kafka.client_config(settings.kafka.secfilter))
        watch = TopicWatch(positions.partitions)
        catalog = Catalog(settings.catalog_url)
        ledger = CatalogLedger(catalog)
        engine = Engine(
            spark=spark,
            kafka=kafka_options(settings.kafka, own.checkpoints / ".kafka"),
            positions=positions,
            note_anew=watch.note_anew,
            drains=Drains(ledger.draining, ledger.drained, ledger.still_read),
            checkpoints=Checkpoints(own.checkpoints),
            id_key=own.id_key_file.read_text().strip(),
            pace=pace_of(own.options),
        )
        ledger.begin()
        runner = Runner(ledger, engine.running, watch, pace=engine.pace)
        _tell_ready()
        runner.run(stop)
        del held
    finally:
        spark.stop()


def _tell_ready() -> None:
    file = os.environ.get(READY_FILE)
    if file:
        Path(file).touch(mode=0o600)


if __name__ == "__main__":
    sys.exit(main())

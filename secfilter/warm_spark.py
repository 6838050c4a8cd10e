"""What the spare engine does with Spark until another engine needs it (`secfilter.spare`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Event

from pyspark.sql import SparkSession

from catalog.engines import FIRST
from catalog.errors import InvalidInput
from catalog.settings import Settings
from secfilter.engine_process import end_with, engine_process
from secfilter.kafka_options import kafka_options
from secfilter.lock import engine_folder, runner_lock
from secfilter.serving import started
from secfilter.spare import SPARE, await_name
from secfilter.warm_up import OF_QUERIES, WarmUp

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WarmSpark:
    """A Spark that is warm, and the engine that it is for."""

    engine: str
    spark: SparkSession


def be_spare(settings: Settings, stop: Event) -> WarmSpark | None:
    """Warm a Spark up and wait until an engine needs it; None on `stop`.

    Raises InvalidInput if the master is a Spark cluster, and Conflict if there is another spare.
    """
    own, kafka = settings.secfilter, settings.kafka
    if own.cluster is not None:
        raise InvalidInput("there is no spare for a Spark cluster; leave --spare out")
    folder = engine_folder(own.checkpoints, SPARE)
    named = Event()
    with runner_lock(folder):
        spark = started(own)
        process = engine_process(spark)
        end_with(process, stop, named)
        login = kafka_options(kafka, kafka.account_of(FIRST), folder / ".kafka")
        WarmUp(spark, login, folder / "warm-up", OF_QUERIES).run()
        given = await_name(stop)
        named.set()
    if given is None:
        process.kill()
        return None
    _log.info("this process is the engine %s now", given.engine)
    return WarmSpark(given.engine, spark)

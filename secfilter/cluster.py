"""Spark on several machines: the options without which an engine does not use a cluster.

The driver runs in the engine's process. The tasks run in *executors*, which are processes on the
workers' machines. What the driver and the executors send to each other is authenticated and
encrypted.
"""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from catalog.errors import InvalidInput
from catalog.settings import SecFilterSettings

SHARED_KEY = "spark.authenticate.secret"
_STANDALONE = re.compile(r"spark://[^\s/,]+:\d+(,[^\s/,]+:\d+)*")
_OTHERS = re.compile(r"k8s://\S+|yarn")
_SECRET_BYTES = 32
_BEAT_S, _BEATS = 2, 4
GONE_S = float(_BEAT_S * (_BEATS + 2))
"""An executor that does not reach its driver for this long has ended itself.

It gives up after `_BEATS` signs of life in a row without an answer, and waits `_BEAT_S` for each.
The rest is for its end.
"""

# No deployment may change these: each protects data on its way between machines, or is part of the
# proof that no executor writes when nobody expects it (docs/architecture.md).
_SAFE = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
    "spark.io.encryption.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.executor.heartbeatInterval": f"{_BEAT_S}s",
    "spark.executor.heartbeat.maxFailures": str(_BEATS),
    # Each task runs once at a time. If it fails, its query starts again and looks at what is
    # in Kafka. (Spark tries tasks of a lost machine again all the same.)
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
}
_DEFAULTS = {
    # A machine that says nothing any more is given up after this time, and not after two minutes.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.syncLogLevel.enabled": "true",
    # State in several parts, so that several machines can work on it. A checkpoint keeps the number
    # that it began with.
    "spark.sql.shuffle.partitions": "4",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """What an engine needs of its cluster.

    Attributes:
        host: The engine's machine, as workers reach it.
        slots: The tasks that are given out. Side runs may take as many again.
        code: The private folder for what is sent to the workers.
        python: The Python of the workers.
        secret: What all machines of a standalone cluster share.
    """

    host: str
    slots: int
    code: Path
    python: str = sys.executable
    secret: str | None = field(default=None, repr=False)


def is_cluster(master: str) -> bool:
    """Whether the master is a Spark cluster. Raises InvalidInput for a text that is none."""
    if _STANDALONE.fullmatch(master) or _OTHERS.fullmatch(master):
        return True
    if master.startswith(("spark:", "k8s:")):
        raise InvalidInput(
            f"the master {master!r} is not understood; write spark://HOST:PORT, and "
            "spark://HOST:PORT,HOST:PORT for several"
        )
    return False


def cluster_of(settings: SecFilterSettings, slots: int, code: Path) -> Cluster | None:
    """The cluster of an engine with these settings, or None if its Spark is one process.

    Raises InvalidInput if something is missing, or if others can read the secret.
    """
    own = settings.cluster
    if not is_cluster(settings.master):
        if own is not None:
            raise InvalidInput(
                f"[secfilter.cluster] is for a Spark cluster, and {settings.master} is none; "
                "leave it out"
            )
        return None
    if own is None:
        raise InvalidInput(
            f"the master {settings.master} is a Spark cluster; write [secfilter.cluster] with "
            "host and secret_file (docs/cluster.md)"
        )
    secret = None
    # YARN and Kubernetes make a secret for each engine themselves.
    if _STANDALONE.fullmatch(settings.master):
        if own.secret_file is None:
            raise InvalidInput("[secfilter.cluster] lacks secret_file (docs/cluster.md)")
        secret = _read_secret(own.secret_file)
    return Cluster(own.host, slots, code, own.python or sys.executable, secret)


def _read_secret(file: Path) -> str:
    try:
        mode, text = file.stat().st_mode, file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"the secret of the Spark cluster, {file}, cannot be read") from None
    if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInput(f"others can read {file}; make it private: chmod 600 {file}")
    if len(text) < _SECRET_BYTES:
        raise InvalidInput(
            f"the secret in {file} is shorter than {_SECRET_BYTES} characters; "
            f"make one: openssl rand -hex 32 > {file}"
        )
    return text


def cluster_options(cluster: Cluster, given: Mapping[str, str]) -> dict[str, str]:
    """Spark's options for the cluster, without the secret. `given` goes over the defaults.

    Raises InvalidInput if `given` would take away what protects data, or has the secret: options
    become arguments of a process, which others can read.
    """
    if SHARED_KEY in given:
        raise InvalidInput(f"{SHARED_KEY} cannot be an option; put it into secret_file")
    if changed := sorted(key for key, value in _SAFE.items() if given.get(key, value) != value):
        raise InvalidInput(
            f"on a cluster {', '.join(changed)} cannot be set; leave it out of the options"
        )
    return {
        **_DEFAULTS,
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.cores.max": str(2 * cluster.slots),
        **given,
        **_SAFE,
    }

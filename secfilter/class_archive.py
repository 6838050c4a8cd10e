"""The archive of the classes that Spark loads: Java's class data sharing.

To load and check 20,000 classes one by one from their jars takes seconds of each start of Spark,
and of its first queries. From an archive Java takes them all at once, and engines share the memory.
`deploy` makes it. Java itself checks whether it fits the jars and the version of Java, and leaves
it out if not. So nothing but time depends on it.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

# Where the archive is at the addresses for which it was made, engines share its memory. Else
# Java changes all addresses in it, and each engine has a copy of its own, of 170 MB.
_IN_PLACE = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"


def archive_of(jars: Path) -> Path:
    """Where the archive is for a driver with this folder of jars, if there is one.

    Java takes an archive only with the very files that it was made of, and the jars of Spark are
    among them. So each installation of Spark has an archive of its own.
    """
    spark = find_spec("pyspark")
    place = spark.origin if spark is not None else ""
    installation = hashlib.sha256(str(place).encode()).hexdigest()[:16]
    return jars.with_name(f"{jars.name}-{installation}.jsa")


def reading(jars: Path | None) -> str:
    """Java's option to take classes from the archive; empty if there is none."""
    if jars is None or not archive_of(jars).exists():
        return ""
    return f'-XX:SharedArchiveFile="{archive_of(jars)}" {_IN_PLACE}'


def writing(archive: Path) -> str:
    """Java's option to write all classes that it has loaded into an archive when it ends."""
    return f'-XX:ArchiveClassesAtExit="{archive}" {_IN_PLACE}'

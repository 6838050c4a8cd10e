"""What the platform runs on: Java and the jars, checked and fetched."""

import sys
from dataclasses import dataclass
from pathlib import Path

from deploy import class_archive, environment, jars


@dataclass(frozen=True)
class Runtime:
    """Java and the two folders of jars.

    Attributes:
        java: The `java` executable, 17 or later.
        jars: Folders of the connector's and the broker's jars.
    """

    java: Path
    jars: jars.JarFolders


def ensure_runtime() -> Runtime:
    """Find Java and the jars, fetching the jars on first use.

    Raises:
        DeployError: Java is missing or too old, or the jars cannot be fetched.
    """
    java = environment.find_java()
    cache = environment.cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    if not jars.verified(cache):
        what = "fetching the jars of Kafka and of Spark's connector (once, a minute or two)"
        print(what, file=sys.stderr)
    return Runtime(java, jars.ensure(java, environment.pyspark_jars(), cache))


def ensure_fast_start(runtime: Runtime) -> None:
    """Make the archive of Spark's classes, for who starts Spark often or measures it."""
    if not class_archive.is_made(runtime.java, runtime.jars.connector):
        print("making an archive of Spark's classes (once, half a minute)", file=sys.stderr)
        class_archive.ensure(runtime.java, runtime.jars.connector)

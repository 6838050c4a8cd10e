"""Resolve the connector's and the broker's jars with Java and the Ivy inside pyspark.

Standard library only. What was fetched is judged by the names and hashes in `jars.lock`, never
by Ivy's exit code: two Ivys at once on an empty cache have ended with 0 and files missing.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import DeployError
from deploy.files import file_lock

LOCK_FILE = Path(__file__).with_name("jars.lock")
IVY_FOLDER = Path(__file__).with_name("ivy")
SETS = ("connector", "broker")
FETCH_TIMEOUT_S = 900


@dataclass(frozen=True)
class JarFolders:
    """Where the verified jars are.

    Attributes:
        connector: Jars for Spark's classpath, beside those that pyspark ships.
        broker: The whole classpath of the Kafka broker.
    """

    connector: Path
    broker: Path


def read_lock(path: Path = LOCK_FILE) -> dict[str, dict[str, str]]:
    """Read the committed list: set -> jar name -> sha256 in hexadecimal."""
    wanted: dict[str, dict[str, str]] = {name: {} for name in SETS}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            jar_set, digest, jar = line.split()
            wanted[jar_set][jar] = digest
    return wanted


def write_lock(folders: Mapping[str, Path], path: Path = LOCK_FILE) -> None:
    """Write the list of what `folders` (set -> folder) hold; for a change of version."""
    lines = ["# set sha256 jar; made by `.venv/bin/python -m deploy.lock_jars`"]
    for name in SETS:
        lines += [f"{name} {digest} {jar}" for jar, digest in sorted(hashes(folders[name]).items())]
    path.write_text("\n".join(lines) + "\n")


def hashes(folder: Path) -> dict[str, str]:
    """sha256 (hexadecimal) of every jar in `folder`, by file name; empty if there is no folder."""
    return {jar.name: _sha256(jar) for jar in folder.glob("*.jar")}


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def difference(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Say in a few words how `found` differs from `wanted` (name -> sha256); '' if it does not."""
    parts = {
        "missing": sorted(wanted.keys() - found.keys()),
        "unexpected": sorted(found.keys() - wanted.keys()),
        "other content": sorted(n for n in wanted.keys() & found.keys() if wanted[n] != found[n]),
    }
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)


def ensure(java: Path, pyspark_jars: Path, cache: Path) -> JarFolders:
    """Give the folders of verified jars, fetching what `cache` does not hold.

    Args:
        java: The `java` executable.
        pyspark_jars: Folder of the jars inside pyspark, which hold Ivy.
        cache: Folder shared by all clones of the project; safe with several callers at once.

    Raises:
        DeployError: A fetch failed, or fetched jars are not those of `jars.lock`.
    """
    target = _folder(cache)
    folders = JarFolders(connector=target / "connector", broker=target / "broker")
    with file_lock(cache / "jars.lock"):
        if not verified(cache):
            shutil.rmtree(target, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as scratch:
                fetched = Path(scratch) / "jars"
                fetch(java, pyspark_jars, Path(scratch), fetched)
                _check(fetched)
                # A rename: the folder is there whole or not at all.
                fetched.rename(target)
    return folders


def _folder(cache: Path) -> Path:
    """Named after the choice of versions, so that clones with other choices do not share it."""
    return cache / f"jars-{_key()}"


def _key() -> str:
    return hashlib.sha256(repr(read_lock()).encode()).hexdigest()[:16]


def verified(cache: Path) -> bool:
    """Whether `cache` holds exactly the jars of `jars.lock`."""
    wanted = read_lock()
    folder = _folder(cache)
    return all(not difference(wanted[name], hashes(folder / name)) for name in SETS)


def _check(fetched: Path) -> None:
    wanted = read_lock()
    for name in SETS:
        found = difference(wanted[name], hashes(fetched / name))
        if found:
            raise DeployError(
                f"the fetched {name} jars are not those of deploy/jars.lock ({found}): "
                "check the network and run the command again"
            )


def fetch(java: Path, pyspark_jars: Path, scratch: Path, target: Path) -> None:
    """Let Ivy put each set's jars into `target`/<set>, using `scratch` for its own cache.

    Raises:
        DeployError: Java or Ivy could not be run, or Ivy reported a failure.
    """
    ivy = find_ivy(pyspark_jars)
    # Each set has its own cache of Ivy's in `scratch`: Ivy is not safe with two writers.
    with ThreadPoolExecutor(len(SETS)) as pool:
        runs = [
            pool.submit(resolve, java, ivy, IVY_FOLDER / f"{name}.xml", scratch, target / name)
            for name in SETS
        ]
    for run in runs:
        run.result()


def find_ivy(pyspark_jars: Path) -> Path:
    """The jar of Ivy inside pyspark. Raises DeployError."""
    ivy = next(pyspark_jars.glob("ivy-*.jar"), None)
    if ivy is None:
        raise DeployError(f"no Ivy jar in {pyspark_jars}: remove .venv and run the command again")
    return ivy


def resolve(java: Path, ivy: Path, module: Path, scratch: Path, target: Path) -> None:
    """Let Ivy put the jars that the file `module` names, and all that they need, into `target`.

    Raises:
        DeployError: Java or Ivy could not be run, or Ivy reported a failure.
    """
    name = module.stem
    command = [str(java), f"-Dsecure.streams.ivy.cache={scratch / name}", "-cp", str(ivy)]
    command += ["org.apache.ivy.Main", "-settings", str(IVY_FOLDER / "settings.xml")]
    command += ["-ivy", str(module), "-confs", "default"]
    # Ivy wants the types as separate words; "jar,bundle" silently fetches nothing.
    command += ["-types", "jar", "bundle"]
    command += ["-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeployError(f"fetching the {name} jars failed ({error}): run it again") from error
    if done.returncode:
        raise DeployError(
            f"fetching the {name} jars failed ({_reason(done.stdout + done.stderr)}): "
            "check the network and run the command again"
        )


def _reason(output: str) -> str:
    """The most telling line of Ivy's output."""
    lines = [line.strip(" :\t") for line in output.splitlines() if line.strip(" :\t")]
    telling = [
        line for line in lines if any(w in line for w in ("not found", "refused", "UNRESOLVED"))
    ]
    return (telling or lines or ["no output"])[-1]

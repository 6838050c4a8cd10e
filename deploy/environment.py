"""The bootstrap: check the machine, make `.venv` from the pins, and run again inside it.

Standard library only, because nothing else is there yet.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

from deploy.errors import DeployError
from deploy.files import file_lock

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON_MINIMUM = (3, 11)
JAVA_MINIMUM = 17
GIGABYTE = 1024**3
# What the environment, the jars and a first run take, and what a later run needs.
FIRST_RUN_BYTES = 3 * GIGABYTE
LATER_RUN_BYTES = GIGABYTE // 4
JAVA_TIMEOUT_S = 60
# Read as package files only and never imported, so that its dependencies stay out.
DATA_PACKAGE = "arch"
PACKAGES = ("catalog", "secadmin", "secfilter", "deploy")


def enter(arguments: list[str]) -> None:
    """Return if this is `.venv` with the present pins; else make it and run again inside it.

    Args:
        arguments: Arguments of the command, for the second run.

    Raises:
        DeployError: Python is too old, the disk too full, or the packages cannot be fetched.
    """
    check_python(sys.version_info[:2])
    ready = _marker().exists() and _marker().read_text() == _key()
    check_disk(shutil.disk_usage(ROOT).free, LATER_RUN_BYTES if ready else FIRST_RUN_BYTES)
    ensure_venv()
    if Path(sys.prefix).resolve() != VENV.resolve():
        python = str(venv_python())
        sys.stdout.flush()
        os.execv(python, [python, "-m", "deploy", *arguments])


def check_python(version: tuple[int, ...]) -> None:
    """Raise DeployError if `version` (major, minor) is too old."""
    if version < PYTHON_MINIMUM:
        found = ".".join(map(str, version))
        raise DeployError(f"Python 3.11 or later is needed, this is {found}: install a newer one")


def check_disk(free_bytes: int, needed_bytes: int) -> None:
    """Raise DeployError if less than `needed_bytes` are free."""
    if free_bytes < needed_bytes:
        raise DeployError(
            f"{needed_bytes / GIGABYTE:.2g} GB of free disk are needed in {ROOT}, "
            f"{free_bytes / GIGABYTE:.2g} GB are free: make room"
        )


def find_java() -> Path:
    """The `java` executable: JAVA_HOME's if set, else the one on PATH; 17 or later.

    Raises:
        DeployError: There is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise DeployError(
            f"no java {where}: install Java {JAVA_MINIMUM} or later "
            "(Debian: openjdk-17-jre-headless) and set JAVA_HOME if it is not on PATH"
        )
    version = java_version(Path(found))
    if version < JAVA_MINIMUM:
        raise DeployError(
            f"{found} is Java {version}, and {JAVA_MINIMUM} or later is needed: "
            "install it (Debian: openjdk-17-jre-headless) or set JAVA_HOME"
        )
    return Path(found)


def java_version(java: Path) -> int:
    """Feature version of a `java` executable, such as 17; 8 for `1.8`.

    Raises:
        DeployError: It cannot be run or does not tell.
    """
    try:
        done = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=JAVA_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeployError(f"{java} cannot be run ({error}): set JAVA_HOME") from error
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if done.returncode or found is None:
        raise DeployError(f"{java} does not tell its version: set JAVA_HOME to Java {JAVA_MINIMUM}")
    return int(found[1])


def cache_folder() -> Path:
    """Folder of what all clones share: `$XDG_CACHE_HOME/secure-streams`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "secure-streams"


def pyspark_jars() -> Path:
    """Folder of the jars inside the pyspark of the running Python.

    Raises:
        DeployError: pyspark is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise DeployError("pyspark is not installed here: run `python3 -m deploy test`")
    return Path(spec.origin).parent / "jars"


def venv_python() -> Path:
    """The environment's interpreter."""
    return VENV / "bin" / "python"


def ensure_venv() -> None:
    """Make `.venv` hold the pinned packages; quick if it does already. Safe with several callers.

    Raises:
        DeployError: A package could not be fetched or installed, or `.venv` is a link.
    """
    with file_lock(ROOT / ".cache" / "bootstrap.lock"):
        key = _key()
        if _marker().exists() and _marker().read_text() == key:
            return
        if VENV.is_symlink():
            raise DeployError(
                f"{VENV} is a link, and what it leads to would be changed: remove the link and run "
                "the command again"
            )
        print("making .venv from the pinned packages (once, a few minutes)", file=sys.stderr)
        _marker().unlink(missing_ok=True)
        if not _usable():
            _create()
        _pip("-e", ".[dev]")
        _pip("--no-deps", DATA_PACKAGE)
        # Last, so that an interrupted installation is taken up again.
        _marker().write_text(key)


def _usable() -> bool:
    """Whether `.venv` is whole and was made here: its scripts name the folder they were made in."""
    pip = VENV / "bin" / "pip"
    return venv_python().exists() and pip.exists() and f"{VENV}/" in pip.read_text()


def _create() -> None:
    try:
        venv.create(VENV, clear=True, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        # Debian's python3 comes without ensurepip.
        raise DeployError(
            "this Python cannot make an environment with pip: install its venv module "
            "(Debian: python3-venv) and run the command again"
        ) from error


def _marker() -> Path:
    return VENV / "pins"


def _key() -> str:
    """What the environment depends on, as one hash."""
    digest = hashlib.sha256()
    for name in ("constraints.txt", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    # An editable installation knows the top-level packages that were there when it was made.
    present = [name for name in PACKAGES if (ROOT / name / "__init__.py").exists()]
    digest.update(repr((present, str(ROOT))).encode())
    return digest.hexdigest()


def _pip(*what: str) -> None:
    command = [str(venv_python()), "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "-c", "constraints.txt", *what]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        log = ROOT / ".cache" / "pip.log"
        log.write_text(done.stdout + done.stderr)
        raise DeployError(
            f"the packages could not be installed ({pip_reason(done.stderr)}): "
            f"check the network and run the command again; details in {log}"
        )


def pip_reason(output: str) -> str:
    """The first error that pip reports, on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines[-1:] or ["pip said nothing"])[0]

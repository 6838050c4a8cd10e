"""The wheel of the platform, built as docs/cluster.md says, of a copy of the packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from deploy.environment import ROOT

PACKAGES = ("catalog", "secadmin", "secfilter", "deploy")
_BESIDE = ("pyproject.toml", "constraints.txt", ".dockerignore")


def build_wheel(source: Path) -> Path:
    """Copy the packages to `source`, which is not there yet, and build the wheel in its `dist`."""
    without = shutil.ignore_patterns("__pycache__")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=without)
    for name in _BESIDE:
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-deps", "-w", "dist", ".", folder=source)
    (wheel,) = (source / "dist").glob("secure_streams-*.whl")
    return wheel


def pip(*arguments: str, folder: Path) -> None:
    """Run pip in a folder."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

"""The code that workers on other machines need: Spark's Python tasks import it there."""

from __future__ import annotations

import zipfile
from pathlib import Path

_PACKAGES = ("catalog", "secfilter")


def shipped_code(folder: Path) -> Path:
    """Write the packages that Spark's tasks import into a zip in the folder. Gives the zip."""
    target, root = folder / "code.zip", Path(__file__).parents[1]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                archive.write(file, file.relative_to(root))
    return target

"""`.venv/bin/python -m deploy.lock_jars`: write `jars.lock` anew after a change of version.

For whoever changes `deploy/ivy/*.xml`; the difference is to be read before it is committed.
"""

import sys
import tempfile
from pathlib import Path

from deploy import jars
from deploy.environment import find_java, pyspark_jars
from deploy.errors import DeployError


def main() -> int:
    """Fetch what the Ivy files name and write down what came; returns the exit code."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            target = Path(scratch) / "jars"
            jars.fetch(find_java(), pyspark_jars(), Path(scratch), target)
            jars.write_lock({name: target / name for name in jars.SETS})
    except DeployError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

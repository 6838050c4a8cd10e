"""`python3 -m deploy <command>`: set up what is missing, then do it.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import NoReturn

from deploy import environment, hints
from deploy.errors import DeployError

COMMANDS = {
    "demo": "run the demonstration on a fresh platform, then stop it",
    "test": "run the tests; further arguments go to pytest",
    "up": "start broker, SecAdmin and engines in the background, or what is missing of them",
    "down": "stop what `up` started",
    "cluster": "write the settings, certificates and passwords of a platform on several machines",
    "check": "lint, format and types",
    "bench": "measure a fresh platform; further arguments go to the benchmarks",
    "try": "run a query on a few records, without a platform, and show who would get what",
    "console": "Kafka's console consumer or producer, with the files of an access in a folder; "
    "further arguments go to Kafka's tool",
}
# In MB; `deploy.broker_memory` says how many connections of users it bears.
BROKER_HEAP = 1536
PAPERS = ("004", "000", "001", "002", "003")
PASS_THROUGH = ("test", "bench", "console")
BROKER_PORT = 19092
SECADMIN_PORT = 18443
# A longer number is no port, no count and no size of a heap.
_DIGITS = 9


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python3 -m deploy", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in ("up", "down"):
            command.add_argument(
                "--state",
                type=Path,
                default=hints.DEFAULT_STATE,
                help="folder of data, logs, keys and settings (default: .state)",
            )
        if name == "up":
            _add_up(command)
        if name == "try":
            _add_try(command)
        if name == "cluster":
            _add_cluster(command)
        if name == "demo":
            command.add_argument(
                "--paper",
                choices=PAPERS,
                default=PAPERS[0],
                help="whose story: 004, two markets; 000, patients and one query for all; "
                "001, competitors and a wall; 002, weather that is shared in part; "
                "003, event patterns of a bank (default: 004)",
            )
        if name == "console":
            command.add_argument("folder", metavar="DIR", type=Path, help="the access's folder")
        if name == "test":
            _add_test(command)
    return top


def _add_up(command: argparse.ArgumentParser) -> None:
    last = "(default: that of the last start, and {} at first)"
    command.add_argument("--port", type=_port, help="the broker's port " + last.format(BROKER_PORT))
    command.add_argument(
        "--secadmin-port", type=_port, help="SecAdmin's HTTPS port " + last.format(SECADMIN_PORT)
    )
    command.add_argument(
        "--broker-heap",
        type=_megabytes,
        default=BROKER_HEAP,
        metavar="MB",
        help="the broker's heap; each 10 MB more let users have one connection more",
    )
    command.add_argument(
        "--engines",
        type=_engines,
        metavar="N",
        help="how many engines run queries (default: as at the last start, and 1 at first); each "
        "takes about 1 GB of memory",
    )
    command.add_argument(
        "--spare",
        action=argparse.BooleanOptionalAction,
        help="keep a spare engine, so that one that dies is back sooner; it takes about 0.7 GB of "
        "memory (default: as at the last start, and yes at first)",
    )
    command.add_argument(
        "--settings", type=Path, help="TOML with [kafka] (and [catalog]) of an existing cluster"
    )


def _add_test(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--long",
        action="store_true",
        help="also what proves by numbers, part by part (many hours); with files or folders, "
        "only these",
    )
    command.add_argument(
        "--part",
        action="append",
        default=[],
        metavar="NAME",
        help="one part of the long lane (about an hour); can be given several times",
    )
    command.add_argument(
        "--failed",
        action="store_true",
        help="of the long lane, or of the parts that are named, only the tests that failed in the "
        "last run",
    )
    command.add_argument(
        "--results",
        action="store_true",
        help="show what each part of the long lane gave when it ran last; run nothing",
    )


def _add_cluster(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="DIR", type=Path, help="a new folder for the files")
    for option, what, default in (
        ("--kafka", "Kafka's brokers", "kafka-1,kafka-2,kafka-3"),
        (
            *("--controllers", "Kafka's controllers, an odd number"),
            "controller-1,controller-2,controller-3",
        ),
        ("--postgresql", "the servers of PostgreSQL", "postgresql-1,postgresql-2"),
        ("--secadmin", "SecAdmin's machines", "secadmin-1,secadmin-2"),
    ):
        text = f"names of {what}, with commas (default: {default})"
        command.add_argument(option, metavar="NAMES", default=default, help=text)
    command.add_argument(
        "--address",
        metavar="NAME",
        default="secadmin",
        help="the one name that people use for all SecAdmins (default: secadmin)",
    )
    command.add_argument(
        "--engines", type=_engines, default=1, metavar="N", help="how many engines run queries"
    )


def _add_try(command: argparse.ArgumentParser) -> None:
    command.add_argument("query", metavar="FILE", type=Path, help="the query: .sql or .xml")
    command.add_argument(
        "--data", metavar="FILE", type=Path, required=True, help="JSON as docs/try.md says"
    )
    command.add_argument(
        "--weak", action="store_true", help="deliver as an output with weak delivery does"
    )
    command.add_argument("--svg", metavar="FILE", type=Path, help="write the plan as an image")
    command.add_argument("--json", action="store_true", help="print JSON")


def _whole(text: str, least: int, most: int) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            f"{text[:_DIGITS]!r} is not a whole number from {least} to {most}"
        )
    return number


def _port(text: str) -> int:
    return _whole(text, 1, 65_535)


def _engines(text: str) -> int:
    return _whole(text, 1, 1_000)


def _megabytes(text: str) -> int:
    return _whole(text, 1, 1_000_000)


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit code, 1 after a failure that has been told."""
    top = parser()
    options, rest = top.parse_known_args(arguments)
    if rest and options.command not in PASS_THROUGH:
        top.error(f"unrecognized arguments: {' '.join(rest)}")
    options.arguments = rest
    # As with Ctrl-C, what was started is stopped on the way out.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        environment.enter(arguments)
        # Here and not above: what it needs is there only inside the environment.
        from deploy import commands  # noqa: PLC0415

        return commands.run(options)
    except DeployError as error:
        return _tell(str(error), error.exit_code)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _tell(f"{error.strerror or error}{where}", DeployError.exit_code)
    except KeyboardInterrupt:
        return _tell("interrupted", 128 + signal.SIGINT)


def _tell(message: str, code: int) -> int:
    # Blanks stay: they may be in a path.
    print("error: " + " ".join(filter(None, map(str.strip, message.splitlines()))), file=sys.stderr)
    return code


def _terminated(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""No small change of what decides goes unnoticed, but for those that decide the same."""

import json
import subprocess
import sys

import pytest

_UNIT = "tests/unit/catalog/test_"
# Each module's tests, and options that leave out what they need not.
_LABEL = ("--noconftest", f"{_UNIT}label.py")
_CONTROL = "tests/unit/secadmin/control/test_"
_SETTLEMENT = tuple(
    f"{_CONTROL}{name}.py"
    for name in (
        *("delivery_classes", "growth_and_cuts", "senders_and_quarantines", "endings"),
        *("role_texts", "backfill_topics"),
        "views_of_accesses",
        "window_accesses",
        "unanswered_grants",
    )
)
_AUTHORIZER = ("authorizer", "visibility", "clearance_of", "senders", "roles", "authorizer_casbin")
TESTS = {
    "catalog/label.py": _LABEL,
    "catalog/clearance.py": _LABEL,
    "catalog/delivery.py": ("--noconftest", f"{_UNIT}delivery.py"),
    "catalog/authorizer.py": (
        "-k",
        "not postgresql",
        *(f"{_UNIT}{name}.py" for name in _AUTHORIZER),
    ),
    # PostgreSQL asks for the word RECURSIVE, SQLite does not.
    "catalog/senders.py": (
        "-k",
        "not postgresql or a_warning_is_about or a_topic_of_its_own",
        f"{_UNIT}senders.py",
    ),
    "catalog/reach.py": ("--noconftest", f"{_UNIT}plan_flow.py"),
    "catalog/delivery_classes.py": _SETTLEMENT[:2],
    "secadmin/control/settlement.py": _SETTLEMENT,
    "secadmin/control/sight.py": (*_SETTLEMENT, f"{_CONTROL}refused_records.py"),
    "secadmin/control/access_topics.py": (
        *_SETTLEMENT,
        *(f"{_CONTROL}{name}.py" for name in ("backfill_topics", "owed_results", "refills")),
    ),
    "secadmin/control/held_topics.py": ("--noconftest", f"{_CONTROL}held_topics.py"),
    "catalog/role_clauses.py": ("--noconftest", f"{_UNIT}role_clauses.py"),
    "secfilter/lab.py": ("tests/unit/secfilter/test_lab.py",),
}
# Of a module that decides more than what matters here: what a valid label is.
ONLY = {
    "secfilter/lab.py": (
        *("label_text", "decode_label", "is_valid"),
        *("_word", "_any_bit", "_all_of"),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("module", TESTS)
def test_every_mutant_is_noticed_or_equivalent(module: str) -> None:
    # A process of its own: it forks one for each mutant, which nothing that runs here may be in.
    what = f"{module}:{','.join(ONLY.get(module, ()))}"
    command = [sys.executable, "-m", "tests.mutation.run", what, *TESTS[module]]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout) == []

"""The audit chain: each kind of tampering shows."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from catalog import audit
from catalog.audit import SECRET_KEYS, AuditReport, Outcome
from catalog.audit_head import GENESIS, Head, KeptHeads
from catalog.audit_key import AuditKey
from catalog.models import AuditEntry, AuditHead
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY


@pytest.fixture
def logged(catalog: Catalog) -> Catalog:
    """Five entries."""
    for number in range(1, 6):
        detail = {"number": number, "deep": {"list": [1, "two", None, 0.5]}}
        catalog.record("joe", f"act {number}", "stream in1", Outcome.CHANGED, "because", detail)
    return catalog


def report(catalog: Catalog, pinned: Head | None = None) -> AuditReport:
    kept = [KeptHeads("the file", frozenset({pinned}))] if pinned is not None else []
    return catalog.verify_audit(kept)


def tamper(catalog: Catalog, *statements: str) -> None:
    with catalog.bookkeeping() as session:
        for statement in statements:
            session.execute(text(statement))


def test_an_untouched_log_is_intact(logged: Catalog) -> None:
    assert report(logged) == AuditReport(5)
    assert report(logged).intact
    pinned = logged.newest_head()
    assert report(logged, pinned).intact
    logged.record("al", "later", "system", Outcome.DENIED)
    assert report(logged, pinned) == AuditReport(6)


def test_an_empty_log_is_intact(catalog: Catalog) -> None:
    assert report(catalog) == AuditReport(0)
    assert report(catalog, Head(0, GENESIS)).intact


CHANGED = "the entry was changed, inserted or moved"
TAMPERED: dict[str, tuple[tuple[str, ...], tuple[int, str]]] = {
    "another actor": (("UPDATE audit SET actor = 'al' WHERE seq = 3",), (3, CHANGED)),
    "another action": (("UPDATE audit SET action = 'x' WHERE seq = 3",), (3, CHANGED)),
    "another object": (("UPDATE audit SET object = 'x' WHERE seq = 3",), (3, CHANGED)),
    "another outcome": (("UPDATE audit SET outcome = 'denied' WHERE seq = 1",), (1, CHANGED)),
    "another reason": (("UPDATE audit SET reason = '' WHERE seq = 5",), (5, CHANGED)),
    "another detail": (("UPDATE audit SET detail = '{}' WHERE seq = 2",), (2, CHANGED)),
    "another time": (
        ("UPDATE audit SET at = '2020-01-01 00:00:00.000000' WHERE seq = 2",),
        (2, CHANGED),
    ),
    "another hash": (("UPDATE audit SET hash = 'x' WHERE seq = 4",), (4, CHANGED)),
    "the first is missing": (
        ("DELETE FROM audit WHERE seq = 1",),
        (1, "the entry is missing; the next one there is 2"),
    ),
    "one is missing": (
        ("DELETE FROM audit WHERE seq = 3",),
        (3, "the entry is missing; the next one there is 4"),
    ),
    "one is missing and the rest moved up": (
        (
            "DELETE FROM audit WHERE seq = 3",
            "UPDATE audit SET seq = 3 WHERE seq = 4",
            "UPDATE audit SET seq = 4 WHERE seq = 5",
        ),
        (3, CHANGED),
    ),
    "two changed places": (
        (
            "UPDATE audit SET seq = 99 WHERE seq = 2",
            "UPDATE audit SET seq = 2 WHERE seq = 3",
            "UPDATE audit SET seq = 3 WHERE seq = 99",
        ),
        (2, CHANGED),
    ),
    "one was inserted behind": (
        (("INSERT INTO audit SELECT 6, at, actor, action, object, outcome, reason, detail, hash"
         " FROM audit WHERE seq = 5"),),
        (6, CHANGED),
    ),
    "one was inserted before": (
        (("INSERT INTO audit SELECT 0, at, actor, action, object, outcome, reason, detail, hash"
         " FROM audit WHERE seq = 1"),),
        (1, "the entry is missing; the next one there is 0"),
    ),
    "the last is missing": (
        ("DELETE FROM audit WHERE seq = 5",),
        (5, "entries are missing at the end"),
    ),
    "the last two are missing": (
        ("DELETE FROM audit WHERE seq > 3",),
        (4, "entries are missing at the end"),
    ),
    "all are missing": (("DELETE FROM audit",), (1, "entries are missing at the end")),
    "the head went back": (
        (
            "UPDATE audit_head SET seq = 4",
            "UPDATE audit_head SET hash = (SELECT hash FROM audit WHERE seq = 4)",
        ),
        (6, "entries are missing at the end"),
    ),
    "the head is missing": (("DELETE FROM audit_head",), (6, "the head is missing")),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "problem"), TAMPERED.values(), ids=[*TAMPERED])
def test_tampering_shows(
    logged: Catalog, statements: tuple[str, ...], problem: tuple[int, str]
) -> None:
    tamper(logged, *statements)
    found = report(logged)
    assert not found.intact
    assert found.first_problem == problem


def _cut_with_head(catalog: Catalog) -> None:
    tamper(
        catalog,
        "DELETE FROM audit WHERE seq > 3",
        "UPDATE audit_head SET seq = 3",
        "UPDATE audit_head SET hash = (SELECT hash FROM audit WHERE seq = 3)",
    )


ANOTHER_KEY = AuditKey(b"another" * 8)


def _rewritten(catalog: Catalog, key: AuditKey = ANOTHER_KEY) -> None:
    """Everything again, with another actor."""
    with catalog.bookkeeping() as session:
        rows = [
            (row.at, row.action, row.object, row.outcome, row.reason, row.detail)
            for row in session.query(AuditEntry).order_by(AuditEntry.seq)
        ]
        session.execute(text("DELETE FROM audit"))
        session.expunge_all()
        head = session.get(AuditHead, audit.HEAD_ID)
        assert head is not None
        head.seq, head.hash = 0, GENESIS
        for at, action, what, outcome, reason, detail in rows:
            fields = {"actor": "al", "action": action, "object": what, "outcome": outcome}
            audit.append(session, head, at, {**fields, "reason": reason, "detail": detail}, key)


def _rewritten_with_the_key(catalog: Catalog) -> None:
    _rewritten(catalog, AUDIT_KEY)


def _emptied(catalog: Catalog) -> None:
    reset = f"UPDATE audit_head SET seq = 0, hash = '{GENESIS}'"
    tamper(catalog, "DELETE FROM audit", reset)


def _cut_and_gone_on(catalog: Catalog) -> None:
    _cut_with_head(catalog)
    for number in range(3):
        catalog.record("joe", f"later {number}", "system", Outcome.CHANGED)


def test_without_the_key_nobody_writes_another_chain(logged: Catalog) -> None:
    _rewritten(logged)
    assert report(logged).first_problem == (1, CHANGED)


def test_whose_key_it_is(logged: Catalog, catalog_url: str) -> None:
    assert logged.has_audit_key()
    others, keyless = Catalog(catalog_url, ANOTHER_KEY), Catalog(catalog_url)
    assert not others.has_audit_key()
    assert not keyless.has_audit_key()
    # Who changes one entry must not keep SecAdmin from starting.
    tamper(logged, "UPDATE audit SET actor = 'al' WHERE seq = 1")
    assert logged.has_audit_key()
    assert not others.has_audit_key()
    for each in (others, keyless):
        each.close()


def test_an_empty_log_has_any_key(catalog: Catalog) -> None:
    assert catalog.has_audit_key()


def test_without_the_key_nothing_is_changed(catalog_url: str) -> None:
    keyless = Catalog(catalog_url)
    for act in (lambda: keyless.record("joe", "x", "y", Outcome.DENIED), keyless.verify_audit):
        with pytest.raises(RuntimeError, match="audit key"):
            act()
    keyless.close()


def test_a_committed_change_tells_the_head(catalog: Catalog) -> None:
    told: list[Head] = []
    catalog.tell_heads(told.append)
    catalog.record("joe", "x", "y", Outcome.CHANGED)
    assert told == [catalog.newest_head()]
    catalog.record("joe", "look", "y", Outcome.ALLOWED)
    with pytest.raises(LookupError), catalog.change("joe") as change:
        change.audit("x", "y")
        raise LookupError
    assert len(told) == 1


@pytest.mark.parametrize(
    ("forge", "problem"),
    [
        (_cut_with_head, (4, "entries are missing: the file says that there were 5")),
        (_emptied, (1, "entries are missing: the file says that there were 5")),
        (_cut_and_gone_on, (5, "the chain is another one than the file says")),
        (_rewritten_with_the_key, (5, "the chain is another one than the file says")),
    ],
    ids=["cut", "emptied", "cut, and gone on", "a new chain with the key"],
)
def test_a_kept_head_shows_what_the_chain_alone_cannot(
    logged: Catalog, forge: Callable[[Catalog], None], problem: tuple[int, str]
) -> None:
    pinned = logged.newest_head()
    forge(logged)
    assert report(logged).intact
    assert report(logged, pinned).first_problem == problem


texts = st.text(max_size=100)
names = texts.filter(lambda text: text.lower() not in SECRET_KEYS)


@given(actor=texts, reason=st.text(max_size=3_000), detail=st.dictionaries(names, texts))
@settings(max_examples=40, deadline=None, suppress_health_check=[*HealthCheck])
def test_any_text_can_be_logged_and_verified(
    catalog: Catalog, actor: str, reason: str, detail: dict[str, str]
) -> None:
    catalog.record(actor, actor, reason, Outcome.DENIED, reason, detail)
    assert report(catalog).intact


@pytest.mark.parametrize(
    "detail",
    [
        {"password": "x"},
        {"Secret": "x"},
        {"deep": {"list": [{"token": "x"}]}},
        {"user": {"password_hash": "x"}},
    ],
)
def test_a_secret_is_refused(catalog: Catalog, detail: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="never holds"):
        catalog.record("joe", "x", "y", Outcome.CHANGED, detail=detail)
    assert report(catalog) == AuditReport(0)


@pytest.mark.parametrize("detail", [{"x": float("nan")}, {"x": object()}])
def test_what_is_no_json_is_refused(catalog: Catalog, detail: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        catalog.record("joe", "x", "y", Outcome.CHANGED, detail=detail)
    assert report(catalog) == AuditReport(0)


def test_keys_that_are_no_texts_and_tuples_verify(catalog: Catalog) -> None:
    catalog.record("joe", "x", "y", Outcome.CHANGED, detail={2: (1, 2), 10: {"a": 1}})  # type: ignore[dict-item]
    assert report(catalog).intact


def test_an_unknown_outcome_is_refused(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="maybe"):
        catalog.record("joe", "x", "y", "maybe")


def test_the_head_of_a_log_without_one(catalog: Catalog) -> None:
    tamper(catalog, "DELETE FROM audit_head")
    with pytest.raises(LookupError), catalog.read() as session:
        audit.head(session)

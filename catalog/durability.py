"""Whether what the catalog has confirmed outlives the server that holds it.

If a standby takes over that lacks the last changes, a right that was taken away may be there again,
and the platform would let its holder in once more.
"""

from __future__ import annotations

from sqlalchemy import Engine, text

from catalog.outage import outages_translated

_ON_DISK = frozenset({"on", "remote_apply"})


def durability_warnings(engine: Engine) -> list[str]:
    """One line for each setting of the database with which confirmed changes may be lost.

    Raises Unavailable if the database cannot be reached.
    """
    if engine.dialect.name != "postgresql":
        return []
    with outages_translated(), engine.connect() as connection:
        commit, standbys, fsync = (
            str(connection.execute(text(f"SHOW {name}")).scalar_one())
            for name in ("synchronous_commit", "synchronous_standby_names", "fsync")
        )
    found = []
    if fsync != "on":
        found.append(f"PostgreSQL's fsync = {fsync} may lose changes at a crash: set it to on")
    if commit not in _ON_DISK:
        found.append(
            f"PostgreSQL's synchronous_commit = {commit} may lose changes that were confirmed: "
            "set it to on"
        )
    if _names_several_hosts(engine) and not standbys:
        found.append(
            "PostgreSQL has no synchronous_standby_names: a standby that takes over may lack "
            "revocations that were confirmed, so name the standbys there"
        )
    return found


def _names_several_hosts(engine: Engine) -> bool:
    _, given = engine.dialect.create_connect_args(engine.url)
    return "," in str(given.get("host", ""))

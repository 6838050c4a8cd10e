"""The engines' heartbeat, where a test has no engine."""

from catalog.engines import all_engines
from catalog.pulse import beat
from secadmin.control.platform import Platform


def let_beat(platform: Platform) -> None:
    """What engines do while they are alive."""
    with platform.catalog.read() as session:
        platform.pulse.living(session)
    with platform.catalog.bookkeeping() as session:
        for engine in all_engines(platform.spaces.count):
            beat(session, engine)

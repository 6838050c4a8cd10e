"""The runner's heartbeat, where a test has no runner."""

from catalog.pulse import beat
from secadmin.control.platform import Platform


def let_beat(platform: Platform) -> None:
    """What the runner does while it is alive."""
    with platform.catalog.read() as session:
        platform.pulse.beats(session)
    with platform.catalog.bookkeeping() as session:
        beat(session)

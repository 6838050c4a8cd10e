"""The declared rate of a stream: how many tuples a second its owner expects.

The owner says it, and nothing measures it. So what is refused for it tells nobody how many tuples
come (`catalog.rates`).
"""

from __future__ import annotations

from catalog.models import StreamRow
from catalog.permission import ObjectKind, Permission
from secadmin.control.platform import Platform
from secadmin.control.work import Caller, working


def set_rate(platform: Platform, caller: Caller, stream: str, rate: int | None) -> None:
    """Declare another rate, or none (None). Needs CHANGE PERM on the stream.

    It holds for classes that are opened from then on: no open class is closed for it.
    """
    asked = {"rate": rate}
    with working(platform, caller, "set rate", f"stream {stream}", asked) as work:
        obj = work.find(ObjectKind.STREAM, stream)
        work.require(Permission.CHANGE_PERM, obj)
        row = work.session.get_one(StreamRow, obj.id)
        work.detail["before"] = row.rate
        row.rate = rate

"""The limit of open files of the service. Each connection counts as a file."""

from __future__ import annotations

import resource

WANTED = 65_536


def raise_limit() -> None:
    """Raise the soft limit to the wanted number, but not above the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

"""How many files the service may have open: connections are among them."""

from __future__ import annotations

import resource

WANTED = 65_536


def raise_limit() -> None:
    """Raise the soft limit to what is wanted, as far as the hard one lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

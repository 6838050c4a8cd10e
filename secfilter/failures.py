"""Describes the failure of a query: the kind of error, and never a value.

The text of an error may quote a tuple that the reader may not see. So only the names of conditions
and classes are used. They come from the engine, not from the data.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError

from secfilter.lab import UNKNOWN_CATEGORY

_NAME = re.compile(r"[A-Za-z0-9_.$]{1,120}")
_DEPTH = 12
_OUTERMOST, _LOST = "StreamingQueryException", "ExecutorLostFailure"
_MEANINGS = {
    "TopicAuthorizationException": "Kafka does not let the platform use a topic",
    "GroupAuthorizationException": "Kafka does not let the platform use its consumer group",
    "UnknownTopicOrPartitionException": "a topic is not there",
    "OffsetOutOfRangeException": "a topic has lost records that were not read yet",
    "RecordTooLargeException": "a topic refuses a record for its size",
    "SaslAuthenticationException": "Kafka does not accept the platform's log-in",
    "TimeoutException": "Kafka did not answer in time, or a topic is not there",
}


def describe(error: BaseException) -> str:
    """A failure in words: its meaning, if it is known, and the names of its causes."""
    names = _names(error)
    if _is_full_disk(error):
        meaning: str | None = "the disk of the checkpoints is full"
    elif _tells(error, UNKNOWN_CATEGORY):
        meaning = f"{UNKNOWN_CATEGORY}; it is started again"
    elif _tells(error, _LOST):
        meaning = "a worker of the Spark cluster was lost; it is started again"
    else:
        meaning = next((_MEANINGS[name] for name in reversed(names) if name in _MEANINGS), None)
    return ": ".join(part for part in (meaning, " / ".join(names)) if part)


def _names(error: BaseException) -> list[str]:
    """The condition and the class names of all causes, outermost first."""
    found = [name for name in (_condition(error),) if name]
    causes = [str(thrown.getClass().getSimpleName()) for thrown in _causes(error)]
    found += causes or [type(error).__name__]
    return list(dict.fromkeys(name for name in found if _NAME.fullmatch(name)))


def _tells(error: BaseException, words: str) -> bool:
    """Whether a cause has these words. Spark has no condition for that alone.

    The text of the outermost exception has the whole plan, and so all words that are in it.
    """
    return any(
        words in str(thrown.getMessage())
        for thrown in _causes(error)
        if str(thrown.getClass().getSimpleName()) != _OUTERMOST
    )


def _is_full_disk(error: BaseException) -> bool:
    """Whether the disk was full. In the JVM only the text of the error says that."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return True
    words = os.strerror(errno.ENOSPC)
    return any(thrown.getMessage() == words for thrown in _causes(error))


def _causes(error: BaseException) -> Iterator[Any]:
    """The JVM's exceptions behind Python's, outermost first."""
    thrown: Any = _java(error)
    for _ in range(_DEPTH):
        if thrown is None:
            return
        yield thrown
        thrown = thrown.getCause()


def _condition(error: BaseException) -> str | None:
    getter = getattr(error, "getCondition", None)
    try:
        return str(getter()) if getter is not None and getter() else None
    except Exception:  # the engine is gone with its answer
        return None


def _java(error: BaseException) -> Any:
    """The exception of the JVM behind Python's, if there is one."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    # An object of the JVM seems to have every attribute, so unwrap only Python's own wrapper.
    return thrown.java_exception if isinstance(thrown, Py4JJavaError) else thrown

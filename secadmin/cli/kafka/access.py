"""An access as the server shows it once: a Kafka principal, its secret, and its topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import PlatformError
from secadmin.cli.safe_text import is_safe

# `consume` and the files of `subscribe` use this after the group prefix.
_GROUP = "main"


@dataclass(frozen=True, slots=True)
class Access:
    """The right to read an output or a quarantine, or to write to a stream, as `principal`."""

    kind: str
    name: str
    principal: str
    secret: str = field(repr=False)
    bootstrap: str
    ca_pem: str = field(repr=False)
    group_prefix: str | None = None
    topic: str | None = None
    topic_pattern: str | None = None
    handle: str | None = None

    @classmethod
    def of_answer(cls, name: str, answer: Mapping[str, Any]) -> Access:
        """The access to `name` that the server answered.

        Raises PlatformError if a part of the answer is missing, or if a part would add settings of
        its own to the files that are written from it.
        """
        texts = {key: answer.get(key) for key in cls.__slots__ if key != "name"}
        needed = ("kind", "principal", "secret", "bootstrap", "ca_pem")
        if not all(isinstance(texts[key], str) and texts[key] for key in needed):
            raise PlatformError("the server's answer is not an access; is it an older version?")
        for key, text in texts.items():
            usable = text is None or isinstance(text, str)
            if not usable or (key != "ca_pem" and text and not all(map(is_safe, text))):
                raise PlatformError(f"the server's answer has an unusable {key}")
        return cls(name=name, **texts)  # type: ignore[arg-type]  # checked above

    @property
    def writes(self) -> bool:
        """Say whether this is a sender's access."""
        return self.group_prefix is None

    @property
    def group(self) -> str | None:
        """The consumer group in the files. Any other name with the prefix is possible too."""
        return None if self.group_prefix is None else self.group_prefix + _GROUP

    @property
    def subscription(self) -> str:
        """The topic or pattern that a consumer subscribes to (librdkafka), or a sender's topic."""
        return self.topic_pattern or self.topic or ""

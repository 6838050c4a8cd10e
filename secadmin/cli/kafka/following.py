"""A consumer that follows its moves between topics. It leaves out fences and repeated results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_END, KafkaError, KafkaException

from catalog.errors import NotAuthenticated
from catalog.topics import (
    FENCE_HEADER,
    ID_HEADER,
    LABEL_HEADER,
    LEFT_OUT_HEADER,
    REASON_HEADER,
    ROW_VERSION_HEADER,
)
from secadmin.cli.kafka.client_errors import ENDED, is_ended, kafka_error
from secadmin.cli.kafka.login_check import LoginCheck
from secadmin.cli.kafka.missed_topics import MissedTopics
from secadmin.cli.kafka.positions import Positions
from secadmin.cli.kafka.repeats import Repeats
from secadmin.cli.kafka.retaking import Retaking
from secadmin.cli.refused import refused_record

_POLL_S = 0.2
_VERSION = re.compile(r"-?[0-9]{1,19}")
# A topic that was taken away, or that is not there yet; another one comes under the pattern.
_PASSING = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
# The partition was taken away meanwhile: who is assigned it next is given the record once more.
_TAKEN = frozenset({KafkaError._STATE, KafkaError._UNKNOWN_PARTITION})
# What a consumer must be made with: by itself it counts as read what it has handed out.
OWN_SETTINGS = {"enable.auto.offset.store": False}


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: after so many records, or if none came for so many seconds."""

    most: int | None = None
    idle_s: float | None = None


class Follower:
    """Reads the records of a subscription. `note` gets messages about events such as a move.

    Its consumer is made with OWN_SETTINGS. A record counts as read when the next one is asked for.
    """

    def __init__(
        self,
        positions: Positions | None,
        check: LoginCheck,
        note: Callable[[str], None],
        *,
        left_out: bool = False,
    ) -> None:
        """With `positions` None, the consumer group keeps the offsets.

        With `left_out`, it gives the tuples that the query left out, and no results.
        """
        self._positions = positions
        self._check = check
        self._note = note
        self._retaking = Retaking()
        self._missed = MissedTopics()
        self._repeats = Repeats()
        self._noted = ""
        self._left_out = left_out
        self._is_told = left_out
        self._over: KafkaError | None = None

    def on_error(self, error: KafkaError) -> None:
        """The consumer's error callback."""
        if is_ended(error) or error.fatal():
            self._over = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._tell("no broker answers; still trying")

    def records(
        self, consumer: Any, subscription: str, limits: Limits
    ) -> Generator[dict[str, Any]]:
        """Each record as JSON: `value`, and `label` and `id` if it has them.

        An upsert also has `key` and `version`; `value` is None if it is a deletion. Of a tuple that
        the query left out, `value` says why, and when it was.

        A result that was given before, with the same id, is not given again (`Repeats`).

        A quarantine's record has the form of `secadmin.cli.refused`.

        Raises PlatformError if the access has ended.
        """
        own = {"on_assign": _starter(self._positions)} if self._positions else {}
        subscribe = partial(consumer.subscribe, [subscription], **own)
        subscribe()
        count, last = 0, time.monotonic()
        while limits.most is None or count < limits.most:
            message = self._poll(consumer, subscription, subscribe)
            if self._over is not None:
                raise kafka_error(self._over)
            if message is None:
                if self._check.is_over():
                    raise NotAuthenticated(ENDED)
                if limits.idle_s is not None and time.monotonic() - last >= limits.idle_s:
                    return
                continue
            if (error := message.error()) is not None:
                self._passing(error)
                continue
            record = self._record(message)
            if record is not None:
                self._check.served()
                count, last = count + 1, time.monotonic()
                yield record
            self._store(consumer, message)

    def _poll(self, consumer: Any, subscription: str, subscribe: Callable[[], object]) -> Any:
        try:
            self._missed.serve(consumer, subscription, subscribe)
            # What starts at positions of our own asks the group for none.
            if not self._positions:
                self._retaking.serve(consumer, subscribe)
            return consumer.poll(_POLL_S)
        except KafkaException as error:
            raise kafka_error(error.args[0]) from None

    def _record(self, message: Any) -> dict[str, Any] | None:
        if self._positions:
            self._positions.read(message.topic(), message.partition(), message.offset())
        self._noted = ""
        headers = dict(message.headers() or [])
        if FENCE_HEADER in headers and LEFT_OUT_HEADER not in headers:
            return None
        texts = {str(name): _text(text) for name, text in headers.items()}
        if REASON_HEADER in texts:
            return refused_record(message.value(), texts)
        shown = {name: texts[name] for name in (LABEL_HEADER, ID_HEADER) if name in texts}
        if ID_HEADER in shown and self._is_repeat(message, shown):
            return None
        if LEFT_OUT_HEADER in texts:
            return self._of_left_out(texts[LEFT_OUT_HEADER], shown)
        if self._left_out:
            return None
        return {"value": _value(message.value()), **shown, **_of_upsert(message, texts)}

    def _of_left_out(self, told: str, shown: Mapping[str, str]) -> dict[str, Any] | None:
        """A tuple that the query left out, if these are asked for. Otherwise it is noted once."""
        if self._left_out:
            return {"value": _value(told.encode()), **shown}
        if not self._is_told:
            self._is_told = True
            self._note(
                "the query left out tuples, because its state is full; to see them: secadmin "
                "consume --left-out"
            )
        return None

    def _is_repeat(self, message: Any, shown: Mapping[str, str]) -> bool:
        label = shown.get(LABEL_HEADER, "").encode("utf-8", "surrogateescape")
        return self._repeats.is_repeat(shown[ID_HEADER], message.value() or b"", label)

    def _store(self, consumer: Any, message: Any) -> None:
        """Let the group go on after the record, which was shown or is not to be shown."""
        if self._positions:
            return
        try:
            consumer.store_offsets(message=message)
        except KafkaException as error:
            if error.args[0].code() not in _TAKEN:
                raise kafka_error(error.args[0]) from None

    def _passing(self, error: KafkaError) -> None:
        if is_ended(error) or error.fatal():
            raise kafka_error(error)
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self._check.denied()
            self._retaking.denied()
            self._tell("what you may read has changed; following")
        elif error.code() not in _PASSING:
            self._tell(f"Kafka: {error.str()}; going on")

    def _tell(self, text: str) -> None:
        # The client repeats itself while nothing changes.
        if text != self._noted:
            self._note(text)
            self._noted = text


def _starter(positions: Positions) -> Callable[[Any, list[Any]], None]:
    def assign(consumer: Any, assigned: list[Any]) -> None:
        consumer.assign(positions.starts(assigned, lambda p: _end_of(consumer, p)))

    return assign


def _end_of(consumer: Any, partition: Any) -> int:
    try:
        _, end = consumer.get_watermark_offsets(partition, timeout=10)
    except KafkaException:
        # Taken away again since it was assigned: from wherever its end is when it can be read.
        return OFFSET_END
    return int(end)


def _of_upsert(message: Any, texts: Mapping[str, str]) -> dict[str, Any]:
    """The key and the version of an upsert or a deletion."""
    version = texts.get(ROW_VERSION_HEADER, "")
    if not _VERSION.fullmatch(version):
        return {}
    return {"key": _value(message.key()), "version": int(version)}


def _value(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return _text(raw)


def _text(raw: bytes | str | None) -> str:
    return raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw or ""

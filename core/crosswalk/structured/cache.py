"""What a parser asks of a cache of answers, and the keys of it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import attrs

from crosswalk.codec.classes import REQUIRED
from crosswalk.structured.reason import Choice, ReasonCode, Stage
from crosswalk.structured.result import Violation

__all__ = ["AnswerCache", "CacheStats", "CachedAnswer", "answer_key"]

R = TypeVar("R")


@attrs.frozen(kw_only=True)
class CachedAnswer:
    """The outcome of a parse as it is stored: words and JSON, so that it is the same in every store.

    Attributes:
        document: the value as JSON (what ``orjson.loads`` gives); ``None`` where there is no value.
        stage: the stage that gave the value; ``failure`` where none did.
        reason: the reason code.
        violations: what is wrong with the best candidate.
        partial: whether the value comes from an answer that ends in the middle.
        schema_version: the version that the document names; ``None`` where it names none.
        choice: the rule that chose among several answers; ``None`` where none had to.
        candidates: the documents of several answers of which none was chosen.
        cut: the path of the text in a partial value that may go on; ``None`` where none may.
    """

    document: Any = attrs.field(default=None, metadata={REQUIRED: True})
    stage: Stage = attrs.field(converter=Stage)
    reason: ReasonCode = attrs.field(converter=ReasonCode)
    violations: tuple[Violation, ...] = ()
    partial: bool = False
    schema_version: str | None = None
    choice: Choice | None = attrs.field(default=None, converter=attrs.converters.optional(Choice))
    candidates: tuple[Any, ...] = ()
    cut: str | None = None

    @property
    def is_negative(self) -> bool:
        """Whether it is a failure: no value, only the reason why. Such an entry has a time to live of its own."""
        return self.stage is Stage.FAILURE


@attrs.frozen(kw_only=True)
class CacheStats:
    """What a cache did. ``hits + misses`` is the number of look-ups, each of which is exactly one of the two.

    Attributes:
        hits: look-ups that found an answer, or got the one that another caller was just making.
        misses: look-ups that did not.
        negative_hits: those of the hits that gave a failure.
        shared_hits: those of the hits that waited for another caller's answer.
        stores: entries written.
        evictions: entries that made room for others before their time.
        rejected: entries that were found and not used: corrupt, or not ours. Each is also a miss.
        errors: operations that the store refused or could not be reached for. Such a look-up is a miss.
    """

    hits: int = 0
    misses: int = 0
    negative_hits: int = 0
    shared_hits: int = 0
    stores: int = 0
    evictions: int = 0
    rejected: int = 0
    errors: int = 0

    @property
    def hit_rate(self) -> float | None:
        """The share of look-ups that found an answer, 0 to 1; ``None`` where there were none."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else None


class AnswerCache(Protocol):
    """A cache of parsed answers; every method may be called from many threads and tasks at once.

    No method raises for what the store holds or does: what cannot be read is a miss, what cannot be written is
    left, and both are counted.
    """

    def get_or_parse(
        self,
        key: str,
        produce: Callable[[], R],
        dump: Callable[[R], CachedAnswer],
        load: Callable[[CachedAnswer], R | None],
        *,
        ttl: float | None = None,
    ) -> R:
        """The result stored under *key*, or else what *produce* gives, which is then stored.

        Of many callers that miss at once, one produces and the others wait for it, and get the very same result. A
        call that is made while producing waits for nobody: it produces what is not stored.

        Args:
            key: from :func:`answer_key`; it must cover all that the result depends on.
            produce: parses.
            dump: makes of a result what is stored.
            load: makes a result of what was stored; ``None`` where it does not fit, which is a miss.
            ttl: seconds to live; ``None`` for the cache's own, of which a failure has another than a value.

        Raises:
            ConfigurationError: *ttl* is not a positive number.
            Exception: what *produce* raised, to all that waited for it. It is not stored.
        """
        ...

    async def get_or_parse_async(
        self,
        key: str,
        produce: Callable[[], Awaitable[R]],
        dump: Callable[[R], CachedAnswer],
        load: Callable[[CachedAnswer], R | None],
        *,
        ttl: float | None = None,
    ) -> R:
        """As :meth:`get_or_parse`, for a *produce* that waits, say for the model itself."""
        ...

    def get(self, key: str) -> CachedAnswer | None:
        """What is stored under *key*; ``None`` where there is nothing of use."""
        ...

    def put(self, key: str, answer: CachedAnswer, *, ttl: float | None = None) -> None:
        """Store *answer* under *key* for *ttl* seconds; ``None`` for the cache's own time to live."""
        ...

    def clear(self) -> None:
        """Remove all entries; the statistics stay."""
        ...

    def stats(self) -> CacheStats:
        """What the cache did until now, seen from this process; it does not ask the store."""
        ...

    def size(self) -> int | None:
        """How many entries there are; ``None`` where the store cannot say."""
        ...


def answer_key(*parts: str | Iterable[str] | None) -> str:
    """A key for what *parts* say together: the SHA-256 of them, as 64 hexadecimal digits.

    The same parts give the same key in every process; parts that differ, or are divided otherwise, or stand in
    another order, give another. A list differs from its only text, and ``None`` from the empty text.
    """
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, part: str | Iterable[str] | None) -> None:
    if part is None:
        digest.update(b"n")
    elif isinstance(part, str):
        encoded = part.encode("utf-8", "surrogatepass")  # a lone surrogate is text as well
        digest.update(b"s%d:" % len(encoded))
        digest.update(encoded)
    else:
        items = list(part)
        digest.update(b"l%d:" % len(items))
        for item in items:
            _add(digest, item)

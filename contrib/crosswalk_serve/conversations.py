"""What is kept of answers of the Responses API, so that a request may go on from one by its id."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import orjson

from crosswalk import from_json, to_json
from crosswalk.errors import CrosswalkError
from crosswalk.types import ChatMessage, ChatResponse
from crosswalk_serve.config import Store

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["Conversation", "Conversations", "Documents", "MemoryDocuments", "RedisDocuments", "StoreError"]


class StoreError(CrosswalkError):
    """What was kept cannot be had now: Redis is away."""


@attrs.frozen(repr=False)
class Conversation:
    """An answer and what led to it.

    Attributes:
        turns: the whole conversation, the answer last.
        body: the answer as the client got it.
    """

    turns: tuple[ChatMessage | ChatResponse, ...]
    body: bytes

    def to_bytes(self) -> bytes:
        """It as it is kept."""
        turns = [
            {"response" if isinstance(turn, ChatResponse) else "message": orjson.Fragment(to_json(turn))}
            for turn in self.turns
        ]
        return orjson.dumps({"turns": turns, "body": base64.b64encode(self.body).decode()})

    @classmethod
    def of_bytes(cls, kept: bytes) -> Conversation:
        """What :meth:`to_bytes` gave."""
        read: dict[str, Any] = orjson.loads(kept)
        turns = tuple(
            from_json(orjson.dumps(turn["response"]), ChatResponse)
            if "response" in turn
            else from_json(orjson.dumps(turn["message"]), ChatMessage)
            for turn in read["turns"]
        )
        return cls(turns, base64.b64decode(read["body"]))


class Documents(Protocol):
    """Bytes by name, each for some time."""

    async def put(self, name: str, data: bytes) -> None:
        """Keep *data*."""

    async def get(self, name: str) -> bytes | None:
        """What is kept as *name*, or ``None`` where nothing is."""

    async def remove(self, name: str) -> bool:
        """Keep nothing as *name*; whether something was."""


class MemoryDocuments:
    """:class:`Documents` of this process, within the bounds of *store*; the oldest go first.

    Args:
        store: the bounds.
        clock: seconds, that only ever grow.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._size = 0

    async def put(self, name: str, data: bytes) -> None:
        """See :class:`Documents`; what is larger than all that may be kept is not."""
        await self.remove(name)
        store, now = self._store, self._clock()
        if len(data) > store.bytes or not store.entries:
            return
        self._kept[name] = data, now + store.seconds
        self._size += len(data)
        while len(self._kept) > store.entries or self._size > store.bytes:
            self._drop(next(iter(self._kept)))

    async def get(self, name: str) -> bytes | None:
        """See :class:`Documents`."""
        data, end = self._kept.get(name, (None, 0.0))
        if data is not None and end <= self._clock():
            self._drop(name)
            return None
        return data

    async def remove(self, name: str) -> bool:
        """See :class:`Documents`."""
        is_kept = await self.get(name) is not None
        if is_kept:
            self._drop(name)
        return is_kept

    def _drop(self, name: str) -> None:
        data, _ = self._kept.pop(name)
        self._size -= len(data)


class RedisDocuments:
    """:class:`Documents` in Redis.

    Args:
        client: of redis-py, asynchronous; it is not closed.
        prefix: what all keys start with.
        store: how long they are kept.
    """

    def __init__(self, client: Redis, prefix: str, store: Store) -> None:
        self._client = client
        self._prefix = prefix
        self._store = store

    async def put(self, name: str, data: bytes) -> None:
        """See :class:`Documents`. Raises :class:`StoreError`."""
        if self._store.entries:
            await self._asked(self._client.set(self._key(name), data, px=round(self._store.seconds * 1000)))

    async def get(self, name: str) -> bytes | None:
        """See :class:`Documents`. Raises :class:`StoreError`."""
        stored: bytes | None = await self._asked(self._client.get(self._key(name)))
        return stored

    async def remove(self, name: str) -> bool:
        """See :class:`Documents`. Raises :class:`StoreError`."""
        return bool(await self._asked(self._client.delete(self._key(name))))

    def _key(self, name: str) -> str:
        return f"{self._prefix}:response:{name}"

    @staticmethod
    async def _asked(work: Any) -> Any:
        from redis import RedisError

        try:
            return await work
        except (RedisError, OSError) as error:
            raise StoreError(f"Redis: {type(error).__name__}") from None


class Conversations:
    """The conversations that clients may go on with, each for the key that began it.

    Args:
        documents: where they are kept.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def keep(
        self,
        owner: str | None,
        id: str,
        asked: Sequence[ChatMessage | ChatResponse],
        answer: ChatResponse,
        body: bytes,
    ) -> None:
        """Keep the *answer*, called *id*, which the client got as *body*, with what was *asked*.

        Raises:
            StoreError: it cannot be kept now.
        """
        whole = Conversation((*asked, answer), body)
        await self._documents.put(_name(owner, id), whole.to_bytes())

    async def find(self, owner: str | None, id: str) -> Conversation | None:
        """The one called *id* of *owner*, or ``None`` where it has none.

        Raises:
            StoreError: nobody can tell now.
        """
        stored = await self._documents.get(_name(owner, id))
        return None if stored is None else Conversation.of_bytes(stored)

    async def forget(self, owner: str | None, id: str) -> bool:
        """Keep it no longer; whether it was.

        Raises:
            StoreError: nobody can tell now.
        """
        return await self._documents.remove(_name(owner, id))


def _name(owner: str | None, id: str) -> str:
    """A name that no other owner's id makes."""
    return f"{len(owner or '')}:{owner or ''}:{id}"

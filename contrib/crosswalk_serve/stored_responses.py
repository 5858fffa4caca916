"""Stored answers of the Responses API: what is kept of each, and the pages ``/v1/responses/{id}`` and below."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response

from crosswalk import from_json, to_json
from crosswalk.errors import CrosswalkError, ErrorKind
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.types import ChatMessage, ChatResponse
from crosswalk_serve.config import Store
from crosswalk_serve.http_errors import Refusal

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from crosswalk_serve.gateway import Gateway


Turns = tuple[ChatMessage | ChatResponse, ...]


class StoreError(CrosswalkError):
    """What was kept cannot be had now: Redis is away."""


@attrs.frozen(repr=False)
class Conversation:
    """An answer and what led to it.

    Attributes:
        turns: the whole conversation, the answer last.
        body: the answer as the client got it.
    """

    turns: Turns
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

    def keeps(self, store: bool | None) -> bool:
        """Return whether an answer is kept if its request has this *store*."""
        return store is not False

    async def keep(self, owner: str | None, id: str, conversation: Conversation, store: bool | None) -> None:
        """Keep *conversation*, whose answer is called *id*, if :meth:`keeps` says so for *store*.

        Raises:
            StoreError: it cannot be kept now.
        """
        if self.keeps(store):
            await self._documents.put(name_of(owner, id), conversation.to_bytes())

    async def turns_before(self, owner: str | None, previous: str | None) -> Turns:
        """Return the conversation that a request continues by the id of its *previous* answer.

        Raises:
            Refusal: there is no such answer, or nobody can tell now.
        """
        if previous is None:
            return ()
        try:
            earlier = await self.find(owner, previous)
        except StoreError:
            raise store_is_away() from None
        if earlier is None:
            raise Refusal(
                ErrorKind.INVALID_REQUEST,
                "there is no answer of this previous_response_id, or no longer",
                status=400,
                code="previous_response_not_found",
            )
        return earlier.turns

    async def find(self, owner: str | None, id: str) -> Conversation | None:
        """The one called *id* of *owner*, or ``None`` where it has none.

        Raises:
            StoreError: nobody can tell now.
        """
        stored = await self._documents.get(name_of(owner, id))
        return None if stored is None else Conversation.of_bytes(stored)

    async def forget(self, owner: str | None, id: str) -> bool:
        """Keep it no longer; whether it was.

        Raises:
            StoreError: nobody can tell now.
        """
        return await self._documents.remove(name_of(owner, id))


def name_of(owner: str | None, id: str) -> str:
    """A name that no other owner's id makes."""
    return f"{len(owner or '')}:{owner or ''}:{id}"


def store_is_away() -> Refusal:
    """Return the error while the store cannot be reached."""
    message = "stored responses are temporarily unavailable"
    return Refusal(ErrorKind.SERVER, message, status=503, retry_after=5)


class StoredResponses:
    """The pages of a gateway for its stored responses. Each key sees its own.

    Args:
        gateway: the state that all requests share.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def response(self, request: Request) -> Response:
        """Answer ``GET /v1/responses/{id}``."""
        conversation = await self._find(request)
        return Response(conversation.body, media_type="application/json")

    async def delete(self, request: Request) -> Response:
        """Answer ``DELETE /v1/responses/{id}``."""
        caller, id = self._gateway.caller(request), request.path_params["id"]
        try:
            if not await self._gateway.conversations.forget(caller.name, id):
                raise _unknown()
        except StoreError:
            raise store_is_away() from None
        return _json({"id": id, "object": "response", "deleted": True})

    async def cancel(self, request: Request) -> Response:
        """Refuse ``POST /v1/responses/{id}/cancel``: no response runs in the background."""
        await self._find(request)
        message = "this response did not run in the background, so it cannot be cancelled"
        raise Refusal(ErrorKind.INVALID_REQUEST, message, status=400)

    async def input_items(self, request: Request) -> Response:
        """Answer ``GET /v1/responses/{id}/input_items``, the whole conversation before the response."""
        conversation = await self._find(request)
        query = request.query_params
        limit, after = query.get("limit", "20"), query.get("after")
        if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:4]) <= 100):
            raise Refusal(ErrorKind.INVALID_REQUEST, "limit must be from 1 to 100", status=400)
        items = _items(conversation, request.path_params["id"])
        if query.get("order", "desc") == "desc":
            items.reverse()
        ids = [item["id"] for item in items]
        if after is not None and after not in ids:
            raise Refusal(ErrorKind.INVALID_REQUEST, "after names no item of this response", status=400)
        begin = 0 if after is None else ids.index(after) + 1
        page = items[begin : begin + int(limit)]
        ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
        has_more = begin + len(page) < len(items)
        return _json({"object": "list", "data": page, **ends, "has_more": has_more})

    async def _find(self, request: Request) -> Conversation:
        caller, id = self._gateway.caller(request), request.path_params["id"]
        try:
            result = await self._gateway.conversations.find(caller.name, id)
        except StoreError:
            raise store_is_away() from None
        if result is None:
            raise _unknown()
        return result


def _items(conversation: Conversation, id: str) -> list[dict[str, Any]]:
    """Return the conversation before the response as items of Responses, each with an id."""
    requested = ChatRequest(conversation.turns[:-1], model="-")
    raw = build_http_request(requested, "openai_responses", on_unsupported="drop").body["input"]
    items = [{"role": "user", "content": raw}] if isinstance(raw, str) else raw
    return [
        {"id": f"item_{number}_{id}", "type": "message", **{key: _parts(item, key) for key in item}}
        for number, item in enumerate(items)
    ]


def _parts(item: dict[str, Any], key: str) -> Any:
    """Return the value of *key* of *item*. The text of a message becomes a list of parts, as stored items have it."""
    value = item[key]
    if key != "content" or not isinstance(value, str):
        return value
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    return [{"type": kind, "text": value, **({"annotations": []} if kind == "output_text" else {})}]


def _unknown() -> Refusal:
    return Refusal(ErrorKind.INVALID_REQUEST, "there is no such response, or no longer", status=404)


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")

"""The state that all requests of a gateway share: its settings, its stored answers, and its logs."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from hashlib import sha256
from operator import is_not
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs
import orjson
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from crosswalk import from_json, to_json
from crosswalk.convert import WireForm
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.formats.response_items import MADE_UP_ID, approval_ids, names_in, told_again
from crosswalk.service import (
    KEPT_FIELDS,
    Call,
    Observation,
    Observer,
    at_another_address,
    ids_in,
    item_ids,
    kept_ids,
    may_name,
    seals_in,
)
from crosswalk.service.endpoint import Route as EndpointRoute, where
from crosswalk.text import clean_message
from crosswalk.types import (
    AttemptOutcome,
    ChatMessage,
    ChatResponse,
    UsageInfo,
    dump_json,
    load_json,
)
from crosswalk_serve.answers import framed, reword, words_for
from crosswalk_serve.config import Config, Store
from crosswalk_serve.http import (
    BadRequestError,
    Interruptible,
    Refusal,
    dumped,
    header_of,
    loaded,
    number_in,
    word_in,
)
from crosswalk_serve.requests import Incoming, with_fields
from crosswalk_serve.routing import (
    Caller,
    Counters,
    Keyring,
    MemoryCounters,
    ModelRoute,
    Quotas,
    RedisCounters,
    Reservation,
    Router,
    connect,
)
from crosswalk_serve.telemetry import ExchangeLog, Metrics

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from crosswalk.types import ProviderAttempt, UsageInfo


# ------------------------------------------------------------------------------------ logs
# The logs: a line for each request, failed attempt and cool-down.


_log = logging.getLogger("crosswalk.serve")


class Exchange:
    """A request: what it uses of the limits of its key, and its line in the log.

    Args:
        gateway: the state that all requests share.
        client: the request.
    """

    def __init__(self, gateway: Gateway, client: HTTPConnection) -> None:
        self._gateway = gateway
        self._start_time = perf_counter()
        self._caller = Caller(None, None)
        self._route: ModelRoute | None = None
        self._reservation: Reservation | None = None
        self._log_fields: dict[str, Any] = {**client_fields(client)}

    async def _count(
        self,
        provider: str,
        model: str,
        usage: UsageInfo | None,
        dollars: float | None,
        *,
        is_estimated: bool,
        stated: UsageInfo | None = None,
    ) -> float | None:
        """Count *usage* in place of what was reserved, and return its cost if the client is to know it.

        Args:
            provider: the provider that has answered.
            model: the model.
            usage: the tokens, or ``None`` if no server has counted them.
            dollars: their cost, or ``None`` if it is unknown.
            is_estimated: whether the gateway has estimated the tokens.
            stated: the tokens for the metrics, or ``None`` for *usage*.
        """
        gateway, route = self._gateway, self._route
        assert route is not None, "it was asked for"
        reservation, self._reservation = self._reservation, None
        counts = {}
        if usage is not None:
            counts = {
                "gen_ai.usage.input_tokens": usage.prompt_tokens,
                "gen_ai.usage.output_tokens": usage.completion_tokens,
            }
        else:
            usage = UsageInfo.EMPTY
        await gateway.quotas.spend(self._caller, usage.total_tokens, dollars or 0.0, reservation)
        if gateway.metrics is not None:
            gateway.metrics.spent(route.name, self._caller.name, stated or usage, dollars or 0.0)
        self._log_fields |= {
            **({"crosswalk.estimated": True} if is_estimated else {}),
            "gen_ai.provider.name": provider,
            "gen_ai.response.model": model[:100],
            **counts,
            "crosswalk.cost_usd": dollars,
        }
        return dollars if gateway.config.costs and not is_estimated else None

    async def _record(self, id: str, form: str, status: int, dropped: Sequence[str]) -> None:
        """Return what is still reserved, count the request, and log how it ended.

        Args:
            id: the id of the request.
            form: the client's form, or the path of another request.
            status: the HTTP status.
            dropped: the fields that did not reach the server or the client.
        """
        if self._reservation is not None:
            await self._gateway.quotas.spend(self._caller, 0, 0.0, self._reservation)
        metrics, key = self._gateway.metrics, self._caller.name or ""
        model = "" if self._route is None else self._route.name
        seconds = perf_counter() - self._start_time
        if metrics is not None:
            metrics.requests.labels(form, model, key, str(status)).inc()
            metrics.seconds.labels(form, model).observe(seconds)
            if dropped:
                metrics.dropped.labels(form, model).inc()
        names = header_of(dropped)
        extra = {
            "event.name": "crosswalk.request",
            "crosswalk.request.id": id,
            "crosswalk.form": form,
            "crosswalk.key": key,
            "crosswalk.dropped": names,
            "gen_ai.request.model": model,
            "http.response.status_code": status,
            "http.server.request.duration": round(seconds, 6),
            **self._log_fields,
        }
        text = f"{form} {model or '-'} {key or '-'} {status} {seconds:.3f}s{names and f' dropped: {names}'}"
        _log.info("%s %s", id, text, extra=extra)


def client_fields(client: HTTPConnection) -> dict[str, str]:
    """Return the fields of a request in the log: the address of its *client*."""
    return {"client.address": "-" if client.client is None else client.client.host[:60]}


_LONGEST: Final = 300

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request that the current task answers."""


class AttemptLog:
    """An :class:`~crosswalk.service.Observer` that counts attempts in *metrics*, and logs failed ones and cool-downs."""

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    def started(self, _: Call) -> Observation:
        """Do nothing when a call begins."""
        return self

    def attempted(self, attempt: ProviderAttempt, route: EndpointRoute) -> None:
        """Log *attempt* if it failed: the server, the kind of error, the HTTP status and the message without secrets.

        If it began or ended a cool-down, another line reports that.
        """
        address = where(route.host)
        if self._metrics is not None:
            self._metrics.attempts.labels(attempt.provider_name, address, attempt.outcome.value).inc()
        if attempt.outcome is AttemptOutcome.ERROR:
            status = attempt.extra.get("status")
            error_info = ErrorInfo(
                ErrorKind(attempt.extra.get("kind", "unknown")),
                attempt.error or "",
                status=status if isinstance(status, int) else None,
            )
            log_failure(attempt.provider_name, address, attempt.model, error_info)
        seconds = attempt.extra.get("cool_down")
        if isinstance(seconds, int | float):
            _log_cool_down(attempt.provider_name, address, seconds)

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """Do nothing when the call has ended."""


def _log_cool_down(provider: str, address: str, seconds: float) -> None:
    text = (
        f"is tried last for {seconds:g}s: it cools down" if seconds else "has answered: its cool-down is over"
    )
    extra = {
        "event.name": "crosswalk.cool_down",
        "crosswalk.request.id": request_id.get(),
        "crosswalk.cool_down": seconds,
        "gen_ai.provider.name": provider,
        "server.address": address,
    }
    _log.warning("%s %s %s %s", request_id.get(), provider, address, text, extra=extra)


def log_failure(provider: str, address: str, model: str, error: ErrorInfo) -> None:
    """Log that an attempt at the server of *provider* at *address* failed with *error*, a message without secrets."""
    kind, status = error.kind.value, error.status
    extra = {
        "event.name": "crosswalk.attempt",
        "crosswalk.request.id": request_id.get(),
        "crosswalk.outcome": AttemptOutcome.ERROR.value,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "server.address": address,
        "error.type": kind,
        "http.response.status_code": status,
    }
    text = f"{provider} {address} {clean_message(model, 60) or '-'}: {kind} {status or '-'}"
    message = clean_message(error.message, _LONGEST)
    _log.warning("%s attempt failed: %s: %s", request_id.get(), text, message, extra=extra)


# ------------------------------------------------------------------------ stored responses
# Stored answers of the Responses API: what is kept of each, and the pages ``/v1/responses/{id}`` and below.


Turns = tuple[ChatMessage | ChatResponse, ...]


class StoreError(Refusal):
    """A stored value is temporarily unavailable, because Redis is. A client learns no more than that."""

    def __init__(self, detail: str) -> None:
        message = "stored responses are temporarily unavailable"
        super().__init__(ErrorKind.SERVER, message, status=503, retry_after=5)
        self.args = (detail,)


@attrs.frozen(repr=False)
class StoredConversation:
    """An answer and what led to it.

    Attributes:
        turns: the whole conversation, the answer last.
        body: the answer as the client got it.
        items: the input items of Responses before the answer, each with its id.
    """

    turns: Turns
    body: bytes
    items: tuple[dict[str, Any], ...] = ()

    def items_with(self, id: str) -> tuple[dict[str, Any], ...]:
        """Return the items, and those of the answer, which is called *id*, as the client got them."""
        output = loaded(self.body, mends=True).get("output") if self.body else None
        given = output if isinstance(output, list) else ()  # as the server sent it
        return with_ids(self.items, (item for item in given if isinstance(item, dict)), id)

    def to_bytes(self) -> bytes:
        """Return the stored bytes."""
        turn_objects = [
            {"response" if isinstance(turn, ChatResponse) else "message": orjson.Fragment(to_json(turn))}
            for turn in self.turns
        ]
        items_text = dump_json(self.items).decode()
        return orjson.dumps(
            {"turns": turn_objects, "body": base64.b64encode(self.body).decode(), "items": items_text}
        )

    @classmethod
    def of_bytes(cls, stored_bytes: bytes) -> StoredConversation:
        """Read the bytes that :meth:`to_bytes` wrote.

        Raises:
            ValueError, LookupError, TypeError: another version has kept it in another form.
        """
        document: dict[str, Any] = load_json(stored_bytes)
        turns = tuple(
            from_json(dump_json(turn["response"]), ChatResponse)
            if "response" in turn
            else from_json(dump_json(turn["message"]), ChatMessage)
            for turn in document["turns"]
        )
        items = tuple({**item, "id": item["id"]} for item in load_json(document["items"].encode()))
        return cls(turns, base64.b64decode(document["body"]), items)


class Documents(Protocol):
    """Bytes by name, each for some time."""

    async def put(self, name: str, data: bytes, answer: str | None = None) -> bool:
        """Store *data* as long as the rest of its *answer*, or by itself without one. Return whether it is stored."""

    async def get(self, name: str) -> bytes | None:
        """Return the stored value of *name*, or ``None`` without one."""

    async def remove(self, name: str) -> bool:
        """Remove the value of *name*. Return whether there was one."""


class MemoryDocuments:
    """:class:`Documents` of this process, within the bounds of *store*. The oldest answers go first.

    Args:
        store: the bounds.
        clock: returns seconds that only grow.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time) -> None:
        self._store = store
        self._clock = clock
        self.read_at = int(clock())
        self._stored_documents: dict[str, tuple[bytes, float, str]] = {}
        self._names_by_answer: dict[str, set[str]] = {}
        self._size = 0

    async def put(self, name: str, data: bytes, answer: str | None = None) -> bool:
        """See :class:`Documents`. *data* above the bound of all documents is not stored."""
        await self.remove(name)
        store, now = self._store, self._clock()
        if len(data) > store.bytes or not store.entries:
            return False
        answer = answer or name
        self._stored_documents[name] = data, now + store.seconds, answer
        self._names_by_answer.setdefault(answer, set()).add(name)
        self._size += len(data)
        while len(self._names_by_answer) > store.entries or self._size > store.bytes:
            for each in tuple(next(iter(self._names_by_answer.values()))):
                self._drop(each)
        return name in self._stored_documents

    async def get(self, name: str) -> bytes | None:
        """See :class:`Documents`."""
        data, end, _ = self._stored_documents.get(name, (None, 0.0, ""))
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
        data, _, answer = self._stored_documents.pop(name)
        self._size -= len(data)
        self._names_by_answer[answer].remove(name)
        if not self._names_by_answer[answer]:
            del self._names_by_answer[answer]


class RedisDocuments:
    """:class:`Documents` in Redis.

    Args:
        client: an asynchronous client of redis-py, which is not closed.
        prefix: the prefix of all keys.
        store: how long they are kept.
    """

    def __init__(self, client: Redis, prefix: str, store: Store) -> None:
        self._client = client
        self._prefix = prefix
        self._store = store

    async def put(self, name: str, data: bytes, answer: str | None = None) -> bool:
        """See :class:`Documents`. Raises :class:`StoreError`."""
        if self._store.entries:
            await self._asked(self._client.set(self._key(name), data, px=round(self._store.seconds * 1000)))
        return self._store.entries > 0

    async def get(self, name: str) -> bytes | None:
        """See :class:`Documents`. Raises :class:`StoreError`."""
        document: bytes | None = await self._asked(self._client.get(self._key(name)))
        return document

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

    async def keep(
        self, owner: str | None, id: str, conversation: StoredConversation, store: bool | None
    ) -> bool:
        """Store *conversation* with the answer *id*, if :meth:`keeps` allows it for *store*. Return whether it is stored.

        Raises:
            StoreError: it cannot be kept now.
        """
        return self.keeps(store) and await self._documents.put(
            _conversation_name(owner, id), conversation.to_bytes()
        )

    async def before(self, owner: str | None, previous_id: str | None) -> StoredConversation:
        """Return the conversation that a request continues by the id of its *previous_id* answer.

        Its items include those of that answer.

        Raises:
            Refusal: the answer is unknown, or the store is unavailable.
        """
        if previous_id is None:
            return StoredConversation((), b"")
        conversation = await self.find(owner, previous_id)
        if conversation is None:
            raise Refusal(
                ErrorKind.INVALID_REQUEST,
                "there is no answer of this previous_response_id, or no longer",
                status=400,
                code="previous_response_not_found",
            )
        return attrs.evolve(conversation, items=conversation.items_with(previous_id))

    async def find(self, owner: str | None, id: str) -> StoredConversation | None:
        """The one called *id* of *owner*, or ``None`` where it has none, or one that only another version can read.

        Raises:
            StoreError: the store does not answer.
        """
        document = await self._documents.get(_conversation_name(owner, id))
        with suppress(ValueError, LookupError, TypeError):
            return StoredConversation.of_bytes(document or b"")
        return None

    async def forget(self, owner: str | None, id: str) -> bool:
        """Remove a stored answer. Return whether it was stored.

        Raises:
            StoreError: the store does not answer.
        """
        return await self._documents.remove(_conversation_name(owner, id))


def _conversation_name(owner: str | None, id: str) -> str:
    """Return the name of a conversation in its store, which no id of an item, nor of other state, can be."""
    return name_of(owner, f"conversation:{id}")


def name_of(owner: str | None, id: str) -> str:
    """A name that no other owner's id makes."""
    return f"{len(owner or '')}:{owner or ''}:{id}"


class StoredResponses:
    """The pages of a gateway for its stored responses. Each key sees its own.

    Args:
        gateway: the state that all requests share.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def response(self, request: Request) -> Response:
        """Answer ``GET /v1/responses/{id}``, with ``?stream=true`` by the events of the answer."""
        conversation = await self._find(request)
        is_stream = word_in(request, "stream", ("false", "true")) == "true"
        after = number_in(request, "starting_after", -1, range(-1, 10**9))
        if not is_stream:
            return Response(conversation.body, media_type="application/json")
        words = words_for(request.headers, self._gateway.config.reasoning_events)
        frames = []
        for event in told_again(loaded(conversation.body)):
            if event["sequence_number"] > after:
                reword(event, words)
                frames.append(framed(WireForm.OPENAI_RESPONSES, event, dumped(event)))
        return Response(b"".join(frames), media_type="text/event-stream")

    async def delete(self, request: Request) -> Response:
        """Answer ``DELETE /v1/responses/{id}``. Its items go with it, and those that came with its request."""
        conversation = await self._find(request)
        caller, id = self._gateway.caller(request), request.path_params["id"]
        await self._gateway.conversations.forget(caller.name, id)
        await self._gateway.kept_state.forget_items(caller.name, id, conversation.items_with(id))
        return _json({"id": id, "object": "response", "deleted": True})

    async def cancel(self, request: Request) -> Response:
        """Refuse ``POST /v1/responses/{id}/cancel``: no response runs in the background."""
        await self._find(request)
        message = "this response did not run in the background, so it cannot be cancelled"
        raise Refusal(ErrorKind.INVALID_REQUEST, message, status=400)

    async def input_items(self, request: Request) -> Response:
        """Answer ``GET /v1/responses/{id}/input_items``, the whole conversation before the response."""
        conversation = await self._find(request)
        limit, after = number_in(request, "limit", 20, range(1, 101)), request.query_params.get("after")
        items = list(conversation.items)
        if word_in(request, "order", ("desc", "asc")) == "desc":
            items.reverse()
        ids = [item["id"] for item in items]
        if after is not None and after not in ids:
            raise BadRequestError("names no item of this response", "after")
        start = 0 if after is None else ids.index(after) + 1
        page = items[start : start + limit]
        page_ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
        has_more = start + len(page) < len(items)
        return _json({"object": "list", "data": page, **page_ends, "has_more": has_more})

    async def _find(self, request: Request) -> StoredConversation:
        caller, id = self._gateway.caller(request), request.path_params["id"]
        conversation = await self._gateway.conversations.find(caller.name, id)
        if conversation is None:
            raise _unknown()
        return conversation


def input_items(given: Any) -> list[dict[str, Any]]:
    """Return the items of the input *given* in a request of Responses. Instructions are none."""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    return [{**{key: _parts(item, key) for key in item}, "type": _type_of(item)} for item in items]


def _type_of(item: Mapping[str, Any]) -> Any:
    """Return the type of an input *item*, which may leave it out."""
    return item.get("type") or ("message" if "role" in item else _REFERENCE)


def with_ids(
    earlier: Sequence[dict[str, Any]], items: Iterable[dict[str, Any]], id: str
) -> tuple[dict[str, Any], ...]:
    """Return the *earlier* items and *items*, each once, with its own id or one made of the *id* of their response."""
    items_by_id = {item["id"]: item for item in earlier}
    for item in items:
        own_id = _own_id(item) or f"item_{len(items_by_id)}_{id}"
        items_by_id.setdefault(own_id, {**item, "id": own_id})
    return tuple(items_by_id.values())


def _own_id(item: Mapping[str, Any]) -> str:
    """Return the id of *item* as somebody else has given it, or ``""`` without one."""
    id = item.get("id")
    return id if isinstance(id, str) else ""


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
    return Response(dump_json(value), media_type="application/json")


# ------------------------------------------------------------------------------ kept state
# What is kept for clients: the ids that a server gave to a key, and the items of the answers that the gateway stores.


_REFERENCE: Final = "item_reference"
_ITEM: Final = re.compile(r"input\[(\d+)\]")
"""The path of an item that names a kept one."""
_LISTED: Final = re.compile(r"item_\d+_(.+)", re.DOTALL)
"""An id that the gateway makes up for an input item, with the id of the response."""
_UNKNOWN_MESSAGE: Final = "this key has not received it from the server of this model, or that is long ago"

_UNGIVEN_PATHS: Final = ("prompt", "cachedContent")
_UNGIVEN_MESSAGE: Final = "no answer gives it, so this gateway cannot tell to whom it belongs"


class KeptState:
    """The ids and items that each key has received, so that no key can continue the state of another key or server.

    Args:
        documents: where it is noted for stored answers.
        unstored: where it is noted for others.
    """

    def __init__(self, documents: Documents, unstored: Documents) -> None:
        self._documents, self._unstored = documents, unstored

    async def note(
        self, owner: str | None, server: str, incoming: Incoming, response: ChatResponse, id: str | None
    ) -> None:
        """Note that *owner* has received from *server* the ids of what it keeps of *response* to *incoming*.

        They are noted as long as that is stored by its *id*, or as one of the latest answers if that is ``None``.

        Raises:
            StoreError: it cannot be noted now.
        """
        documents, answer = (
            self._unstored if id is None else self._documents,
            name_of(owner, id or response.id),
        )
        is_kept = incoming.wants.store is not False
        for id, is_whole in item_ids(response).items():
            if is_kept or is_whole:
                for name in (_note_name(owner, id), _any_key_name(id)):
                    await documents.put(name, server.encode(), answer)
        for seal in seals_in(response):
            await documents.put(_seal_name(seal), server.encode(), answer)
        thread_ids = {response.id} if is_kept and "thread" in incoming.state else set()
        output = response.metadata.extensions.get("output")
        awaited_ids = approval_ids(output) if incoming.form is WireForm.OPENAI_RESPONSES else ()
        # A container and a conversation are kept without the answer, too.
        for id in {*thread_ids, *kept_ids(response), *awaited_ids}:
            await documents.put(name_of(owner, f"{server}:{id}"), b"1", answer)

    async def keeper(self, owner: str | None, servers: Collection[str], incoming: Incoming) -> str | None:
        """Return the one of *servers* that gave *owner* whatever *incoming* names, or ``None`` if it names nothing.

        Raises:
            BadRequestError: it has not.
            Refusal: the store is unavailable.
        """
        keepers: list[str] | None = None
        for path, id in _kept_names(incoming):
            candidates = sorted(servers) if keepers is None else keepers
            keepers = [one for one in candidates if await self._has_received(owner, one, id)]
            if not keepers:
                raise _unknown_name(path, id)
        return keepers[0] if keepers else None

    async def turns_for(
        self, owner: str | None, servers: Collection[str], turns: Turns
    ) -> tuple[Turns, dict[str, str]]:
        """Return *turns* for *servers*, and the server that gave each turn, if it is known, by the id of the turn.

        The names of what *owner* has not received from them are left out. So a server that does not keep the conversation
        gets all of it.

        Raises:
            Refusal: the store is unavailable.
        """
        giving_servers: dict[str, str] = {}
        return tuple(
            [await self._turn_for(owner, servers, turn, giving_servers) for turn in turns]
        ), giving_servers

    async def _turn_for(
        self,
        owner: str | None,
        servers: Collection[str],
        turn: ChatMessage | ChatResponse,
        giving_servers: dict[str, str],
    ) -> ChatMessage | ChatResponse:
        if not isinstance(turn, ChatResponse):
            return turn
        givers = {await self._noted(_seal_name(seal)) for seal in seals_in(turn)}
        for id, is_whole in item_ids(turn).items():
            givers.add(giver := await self._noted(_note_name(owner, id)))
            # All of it in the turn is of any server as long as none is known. An id alone is of none, nor is one made up.
            is_anyones = is_whole and not MADE_UP_ID.fullmatch(id)
            if giver is None and not (is_anyones and await self._noted(_any_key_name(id)) is None):
                return at_another_address(turn)
        names = {giver.decode() for giver in givers if giver is not None}
        if len(names) > 1 or not names <= {*servers}:
            return at_another_address(turn)
        giving_servers.update(dict.fromkeys((turn.id,), *names) if names else {})
        extensions = turn.metadata.extensions
        server = next(iter(servers)) if len(servers) == 1 else None
        foreign_names = [
            name
            for name in KEPT_FIELDS
            for id in ids_in(extensions.get(name))
            if not await self._has_received(owner, server, id)
        ]
        if not foreign_names:
            return turn
        own_extensions = {name: value for name, value in extensions.items() if name not in foreign_names}
        return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, extensions=own_extensions))

    async def _has_received(self, owner: str | None, server: str | None, id: str) -> bool:
        return server is not None and await self._noted(name_of(owner, f"{server}:{id}")) is not None

    async def _noted(self, name: str) -> bytes | None:
        note = await self._documents.get(name)
        return await self._unstored.get(name) if note is None else note

    async def keep_items(
        self, owner: str | None, id: str, answer: Mapping[str, Any], items: Iterable[Any]
    ) -> None:
        """Keep the items of *answer*, a response of the Responses API called *id*, for the references of later requests.

        Input *items* with an id of the client's own are stored as well, unless an answer has given them.

        Raises:
            StoreError: they cannot be kept now.
        """
        output = answer.get("output")
        given = output if isinstance(output, list) else ()  # as the server sent it
        for item in given:
            if isinstance(item, dict) and _own_id(item):
                await self._keep_item(owner, id, item)
        for item in items:
            is_own = item["type"] != _REFERENCE and not _LISTED.fullmatch(item["id"])
            if is_own and await self._kept_item(owner, item["id"]) is None:
                await self._keep_item(owner, id, item)

    async def forget_items(self, owner: str | None, id: str, items: Iterable[Any]) -> None:
        """Keep those of *items* no longer that are kept for the response called *id*.

        Raises:
            StoreError: the store does not answer.
        """
        for item in items:
            kept_item = await self._kept_item(owner, item["id"])
            if kept_item is not None and kept_item["answer"] == id:
                await self._documents.remove(_item_name(owner, item["id"]))

    async def _keep_item(self, owner: str | None, id: str, item: Mapping[str, Any]) -> None:
        document = dump_json({"answer": id, "item": item})
        await self._documents.put(_item_name(owner, item["id"]), document, name_of(owner, id))

    async def _kept_item(self, owner: str | None, id: str) -> dict[str, Any] | None:
        document = await self._documents.get(_item_name(owner, id))
        with suppress(ValueError, LookupError, TypeError):
            kept_item = load_json(document or b"")
            return {"answer": kept_item["answer"], "item": dict(kept_item["item"])}
        return None

    async def with_items(
        self, owner: str | None, incoming: Incoming, conversations: Conversations
    ) -> tuple[Incoming, Any]:
        """Return *incoming*, a request of the Responses API, with the kept items in place of references, and its input.

        The kept ones are those of answers, and the input items of *conversations*, by the ids with which their pages list
        them. No server hears of an id that the gateway has made up.

        Raises:
            BadRequestError: a reference has no id, or an id that the gateway has made up for what it no longer keeps.
            Refusal: the store is unavailable.
        """
        given = incoming.request.said.get("input")
        if not isinstance(given, list):
            return incoming, given
        items = list(given)
        for path, value in incoming.state.items():
            place = _ITEM.fullmatch(path)
            if place is not None and _type_of(value) == _REFERENCE:
                if not _own_id(value):
                    raise BadRequestError("expected the id of an item", f"{path}.id")
                kept_item = await self._kept_item(owner, value["id"])
                item = kept_item["item"] if kept_item else await _listed(owner, value["id"], conversations)
                if item is None and _LISTED.fullmatch(value["id"]):
                    raise _unknown_name(path, value["id"])
                items[int(place[1])] = item or items[int(place[1])]
        sent = [_sent_item(item) if "id" in item else item for item in items]
        if any(map(is_not, sent, given)):
            incoming = with_fields(incoming, input=sent)
        return incoming, items


def refuse_lost_items(incoming: Incoming) -> None:
    """Refuse each reference that is left in *incoming*, a request for servers that keep no items.

    Raises:
        BadRequestError: there is one.
    """
    for path, value in incoming.state.items():
        if _ITEM.fullmatch(path) and _type_of(value) == _REFERENCE:
            raise _unknown_name(path, _own_id(value))


def _unknown_name(path: str, id: str) -> BadRequestError:
    """Return the refusal of the *id* at *path* of what nobody keeps. That of an item has the API's words and status."""
    if _ITEM.fullmatch(path):
        return BadRequestError(f"Item with id {id!r:.80} not found: {_UNKNOWN_MESSAGE}", path, status=404)
    return BadRequestError(_UNGIVEN_MESSAGE if path in _UNGIVEN_PATHS else _UNKNOWN_MESSAGE, path)


def _note_name(owner: str | None, id: str) -> str:
    """Return the name under which the server is noted that gave *owner* the item *id*."""
    return name_of(owner, f"item:{id}")


def _any_key_name(id: str) -> str:
    """Return the name under which it is noted that some key has received the item *id*."""
    return f"item:{id}"


def _seal_name(seal: str) -> str:
    """Return the name under which the server is noted that gave *seal*. Who has a seal may bring it back, by any key."""
    return f"seal:{sha256(seal.encode(errors='surrogatepass')).hexdigest()}"


def _item_name(owner: str | None, id: str) -> str:
    return name_of(owner, f"answer_item:{id}")


def _sent_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return *item* for a server: without an id that the gateway has made up."""
    is_made_up = _LISTED.fullmatch(_own_id(item)) is not None
    return {key: value for key, value in item.items() if key != "id"} if is_made_up else item


def _kept_names(incoming: Incoming) -> Iterator[tuple[str, str]]:
    """Return the path and the id of each name in *incoming* of something that a server keeps.

    Raises:
        BadRequestError: a value there has not the form of a name.
    """
    for path, value in incoming.state.items():
        if not may_name(value):
            raise BadRequestError("must be an id, or an object whose ids are strings", path)
        yield from ((path, id) for id in ids_in(value))
    if incoming.form is WireForm.OPENAI_RESPONSES:
        yield from names_in(incoming.request.said.get("input"))


async def _listed(owner: str | None, id: str, conversations: Conversations) -> dict[str, Any] | None:
    """Return the item that :class:`StoredResponses` lists with the *id* that the gateway made up, or ``None``."""
    response_id = _LISTED.sub(r"\1", id)
    conversation = await conversations.find(owner, response_id)
    items = () if conversation is None else conversation.items_with(response_id)
    return next((item for item in items if item["id"] == id), None)


# --------------------------------------------------------------------------------- gateway
# The state that all requests of a gateway share.


_SHUTDOWN_ERROR = ErrorInfo(
    ErrorKind.SERVER, "the gateway is being shut down", retryable=True, status=503, code="shutting_down"
)


_RELOADED_SECTIONS: Final = (
    "models", "keys", "timeouts", "retry", "on_unsupported", "reasoning_events", "costs",
)  # fmt: skip
"""The sections that :meth:`Gateway.reload` takes. The others belong to open resources, such as sockets and files."""


class Gateway:
    """The models, keys, metrics and logs of a gateway, and the running requests.

    Args:
        config: the configuration.
        clock: returns seconds since 1970. The limits of keys are counted by it.
        service_options: further arguments for each :class:`~crosswalk.service.LLMService`.

    Attributes:
        config: the configuration.
        router: the models.
        keyring: the keys.
        read_at: when the models and the keys were read, in seconds since 1970.
        quotas: the use of the keys.
        stores: whether it keeps the answers of Responses that a client wants to have kept.
        conversations: the stored conversations that a request may continue.
        kept_state: what servers and the gateway keep for each key besides conversations.
        metrics: the metrics for Prometheus, or ``None`` without them.
        exchanges: the log of exchanges, or ``None`` without one.
        is_draining: whether the gateway is shutting down.

    Raises:
        ConfigurationError: something in *config* is impossible, or an extra is not installed.
        PluginError: a plugin is broken.
    """

    def __init__(self, config: Config, *, clock: Callable[[], float] = time, **service_options: Any) -> None:
        self.config = config
        self.metrics = Metrics() if config.metrics else None
        self._observers: list[Observer] = [AttemptLog(self.metrics)]
        self._service_options = service_options
        if config.tracing:
            from crosswalk.service import OpenTelemetry

            self._observers.append(OpenTelemetry())
        self.router = Router(config, self._observers, **service_options)
        self.keyring = Keyring(config.keys, clock)
        self._clock = clock
        self.read_at = int(clock())
        self._redis = None if config.redis is None else connect(config.redis.url.reveal())
        counters: Counters = MemoryCounters(clock)
        # Without Redis, each of several processes would only have its own answers, and a client reaches any of them.
        is_shared = config.listen.workers == 1 or config.redis is not None
        document_limits = config.responses if is_shared else attrs.evolve(config.responses, entries=0)
        self.stores = document_limits.entries > 0
        documents: Documents = MemoryDocuments(document_limits)
        # Of their own, so that they displace no answers, and ids of answers that nobody stores displace no others.
        id_documents: Documents = MemoryDocuments(document_limits)
        unstored_documents: Documents = MemoryDocuments(document_limits)
        if config.redis is not None and self._redis is not None:
            counters = RedisCounters(self._redis, config.redis.prefix)
            documents = id_documents = unstored_documents = RedisDocuments(
                self._redis, config.redis.prefix, config.responses
            )
        self.quotas = Quotas(counters, clock)
        self.conversations = Conversations(documents)
        self.kept_state = KeptState(id_documents, unstored_documents)
        self.exchanges = None if config.log.exchanges is None else ExchangeLog(config.log.exchanges)
        self.is_draining = False
        self._running: set[Interruptible] = set()
        self._count = 0
        self._requests_by_router: Counter[Router] = (
            Counter()
        )  # the requests by the router that was current when they began
        self._closing_tasks: set[asyncio.Task[None]] = set()
        self._idle_event = asyncio.Event()  # set when the gateway is shutting down and no request runs

    # Requests.

    def caller(self, request: HTTPConnection) -> Caller:
        """Return the caller of *request*. If the request has no valid key, log its address.

        Raises:
            Refusal: the request has no valid key.
        """
        try:
            return self.keyring.caller(request.headers)
        except Refusal as refusal:
            extra = {"event.name": "crosswalk.key_refused", **client_fields(request)}
            _log.info("%s: from %s", refusal, clean_message(extra["client.address"]), extra=extra)
            raise

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Reserve a place for one more request.

        Raises:
            Refusal: all places are taken, or the gateway is shutting down.
        """
        if self.is_draining:
            raise Refusal(
                _SHUTDOWN_ERROR.kind,
                _SHUTDOWN_ERROR.message,
                status=503,
                code=_SHUTDOWN_ERROR.code,
                retry_after=1,
            )
        if self._count >= self.config.limits.concurrent_requests:
            raise Refusal(
                ErrorKind.SERVER, "too many requests at once", status=503, code="overloaded", retry_after=1
            )
        router = self.router
        self._count += 1
        self._requests_by_router[router] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._requests_by_router[router] -= 1
            self._close_if_unused(router)
            self._note_idle()

    @contextmanager
    def running(self, interruptible: Interruptible, caller: Caller) -> Iterator[None]:
        """Run *interruptible* for *caller*. The end of the gateway ends it.

        Raises:
            Refusal: the key of *caller* has reached its limit of concurrent requests.
        """
        metrics = self.metrics
        counted = nullcontext() if metrics is None else metrics.running.track_inprogress()
        with self.quotas.place(caller), counted:
            self._running.add(interruptible)
            try:
                yield
            finally:
                self._running.discard(interruptible)

    def route(self, caller: Caller, model: str | None) -> ModelRoute:
        """Return the route for requests of *caller* for *model*.

        Raises:
            Refusal: the model does not exist, or this caller may not use it. The message is the same for both.
        """
        route = None if model is None else self.router.find(model)
        if route is None or not caller.may_ask(route.name):
            raise Refusal(
                ErrorKind.MODEL_UNAVAILABLE, "there is no such model here", status=404, code="model_not_found"
            )
        return route

    def models(self, caller: Caller) -> list[str]:
        """Return the names of the models that *caller* may ask for, without patterns."""
        return [
            name
            for name in self.router.names
            if not name.endswith("*") and (route := self.router.find(name)) and caller.may_ask(route.name)
        ]

    # Reload.

    def reload(self, config: Config) -> tuple[str, ...]:
        """Take models, keys, prices, timeouts and retries from *config*. Running requests end with the old ones.

        Returns:
            The sections that differ and need a restart.

        Raises:
            ConfigurationError: *config* is wrong. Nothing has changed.
            PluginError: a plugin is broken. Nothing has changed.
        """
        router = Router(config, self._observers, **self._service_options)
        old_router, self.router = self.router, router
        self.keyring, self.read_at = Keyring(config.keys, self._clock), int(self._clock())
        fixed_sections = [
            field.name for field in attrs.fields(Config) if field.name not in _RELOADED_SECTIONS
        ]
        restart_sections = tuple(
            name for name in fixed_sections if getattr(config, name) != getattr(self.config, name)
        )
        self.config = attrs.evolve(
            self.config, **{name: getattr(config, name) for name in _RELOADED_SECTIONS}
        )
        self._close_if_unused(old_router)
        return restart_sections

    def _close_if_unused(self, router: Router) -> None:
        """Close the connections of *router* if a newer one has replaced it and none of its requests runs any more."""
        if router is not self.router and not self._requests_by_router[router]:
            del self._requests_by_router[router]
            task = asyncio.get_running_loop().create_task(router.aclose())
            self._closing_tasks.add(task)
            task.add_done_callback(self._closing_tasks.discard)

    # Shutdown.

    def drain(self) -> None:
        """Accept no more requests. Running ones may continue for ``shutdown_seconds``."""
        if not self.is_draining:
            self.is_draining = True
            loop = asyncio.get_running_loop()
            loop.call_later(self.config.limits.shutdown_seconds, self.end_all)
            self._note_idle()

    async def drained(self) -> None:
        """Call :meth:`drain` and wait until no request runs, or until the time for it is over."""
        self.drain()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle_event.wait(), self.config.limits.shutdown_seconds)

    def _note_idle(self) -> None:
        if self.is_draining and not self._count:
            self._idle_event.set()

    def end_all(self) -> None:
        """End the running requests, each in the form of its client."""
        if self._running:
            _log.warning("ending %d answers: the time for shutting down is over", len(self._running))
        for interruptible in list(self._running):
            interruptible.interrupt(_SHUTDOWN_ERROR)

    async def aclose(self) -> None:
        """Close all connections."""
        async with AsyncExitStack() as stack:
            if self._redis is not None:
                stack.push_async_callback(self._redis.aclose)
            for router in {self.router, *self._requests_by_router}:
                stack.push_async_callback(router.aclose)
            await asyncio.gather(*self._closing_tasks)

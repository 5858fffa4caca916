"""Who may ask for which model, within which limits, and the service that answers for it, with its costs."""

from __future__ import annotations

import math
import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from crosswalk.convert import WireForm
from crosswalk.errors import (
    ConfigurationError,
    CrosswalkError,
    ErrorKind,
    ResponseValidationError,
    UnknownProviderError,
)
from crosswalk.formats.reading import ClientRequest
from crosswalk.formats.requests import Incoming
from crosswalk.plugin.registry import registry
from crosswalk.prices import cost_of
from crosswalk.service import (
    ChatRequest,
    HTTPRequest,
    LLMService,
    Observer,
    RetryPolicy,
    Secret,
    ServerFailures,
    Timeouts,
    Turn,
    message_of,
)
from crosswalk.service.model_fit import facts_of, match_of
from crosswalk.service.setup import Prepared, PreparedRequest
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    FinishReason,
    Provenance,
    ResponseMetadata,
    Role,
    SegmentType,
    UsageInfo,
    dump_json,
)
from crosswalk.types.values import altered
from crosswalk.wire import Limits
from crosswalk_serve.config import Config, Key, Model, Target
from crosswalk_serve.http import Refusal, named

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from crosswalk.service import CallOptions


# ------------------------------------------------------------------------------------ keys
# Keys, their rights, and the use of their limits, counted in this process or in Redis.


class CountError(Refusal):
    """A count is not available now, because Redis is away. A client learns no more than that."""

    def __init__(self, detail: str) -> None:
        message = "the limits of the key cannot be checked now"
        super().__init__(ErrorKind.SERVER, message, status=503, retry_after=5)
        self.args = (detail,)


class Counters(Protocol):
    """Whole numbers by name. Each is forgotten when its time is over."""

    async def add(self, name: str, amount: int, until: float) -> int:
        """Add *amount* to the count of *name*, and return the new count. It is forgotten at the time *until*.

        Raises:
            CountError: the count cannot be reached.
        """


class MemoryCounters:
    """:class:`Counters` of this process alone.

    Args:
        clock: returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[int, float]] = {}
        self._sweep_at = 0.0

    async def add(self, name: str, amount: int, until: float) -> int:
        """See :class:`Counters`."""
        now = self._clock()
        if now >= self._sweep_at:
            self._counts = {
                key: count_and_end for key, count_and_end in self._counts.items() if count_and_end[1] > now
            }
            self._sweep_at = now + 60
        count, end = self._counts.get(name, (0, until))
        count = amount if end <= now else count + amount
        self._counts[name] = count, until
        return count


class RedisCounters:
    """:class:`Counters` in Redis, for all processes and machines that use the same *prefix*.

    Args:
        client: an asynchronous client of redis-py. It is not closed.
        prefix: the prefix of all keys.
    """

    def __init__(self, client: Redis, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    async def add(self, name: str, amount: int, until: float) -> int:
        """See :class:`Counters`."""
        from redis import RedisError

        key = f"{self._prefix}:count:{name}"
        try:
            async with self._client.pipeline() as pipe:
                pipe.incrby(key, amount)
                pipe.expireat(key, int(until) + 1)
                count, _ = await pipe.execute()
        except (RedisError, OSError) as error:
            raise CountError(f"Redis: {type(error).__name__}") from None
        return int(count)


def connect(url: str, seconds: float = 1.0) -> Redis:
    """Return a client of the Redis at *url*, which waits *seconds* at most for an answer.

    Raises:
        ConfigurationError: *url* is not a Redis URL, or redis-py is not installed.
    """
    try:
        from redis.asyncio import Redis
    except ImportError:
        raise ConfigurationError(
            "redis needs the extra: pip install 'crosswalk-llm[redis]'", key="redis"
        ) from None
    try:
        return Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds)
    except ValueError:  # its message may quote the password
        raise ConfigurationError(
            "expected an address of a Redis: redis://, rediss:// or unix://", key="redis.url"
        ) from None


_MICRO: Final = 1_000_000
_KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key")
"""The headers for a client's key, besides ``Authorization: Bearer``."""
_LONGEST: Final = 512
SHORTEST: Final = 24
"""The least number of characters of a key. Keys that people make up are shorter, and can be guessed."""


@attrs.frozen
class Caller:
    """The sender of a request.

    Attributes:
        name: the name of the key in the file, or ``None`` if the gateway has no keys.
        key: the key with its rights.
    """

    name: str | None
    key: Key | None

    def may_ask(self, model: str) -> bool:
        """Return whether the caller may ask for *model*, the name in the file."""
        return self.key is None or self.key.may_ask(model)


def new_key() -> str:
    """Return a new random key."""
    return f"cw-{secrets.token_urlsafe(32)}"


class Keyring:
    """The keys of a gateway.

    Args:
        keys: the keys by name. If empty, everybody may ask.
        clock: returns seconds since 1970.
    """

    def __init__(self, keys: Mapping[str, Key], clock: Callable[[], float] = time) -> None:
        self._callers = [Caller(name, key) for name, key in keys.items()]
        self._clock = clock

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Return the sender of a request with *headers*, which hold the key in the way of one of the SDKs.

        Every key is compared completely, so the time reveals nothing.

        Raises:
            Refusal: the request has no key, two different keys, or an unknown key. The message does not say which. Who has
                the key learns that it has expired.
        """
        if not self._callers:
            return Caller(None, None)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        keys = {headers.get(name, "").strip() for name in _KEY_HEADERS}
        keys |= {token.strip()} if scheme.lower() == "bearer" else set()
        keys -= {""}
        matching_key, matching_caller = None, None
        if len(keys) == 1 and len(key := keys.pop()) <= _LONGEST:
            for caller in self._callers:
                if caller.key is not None and caller.key.hash.fits(key):
                    matching_key, matching_caller = caller.key, caller
        if matching_key is None or matching_caller is None:
            raise Refusal(ErrorKind.AUTHENTICATION, "no valid API key was given", code="invalid_api_key")
        if matching_key.expires is not None and matching_key.expires.timestamp() <= self._clock():
            raise Refusal(ErrorKind.AUTHENTICATION, "the API key has expired", code="invalid_api_key")
        return matching_caller


@attrs.frozen
class Period:
    """A minute, a day or a month of the calendar, in UTC.

    Attributes:
        name: its kind.
        number: tells it from others of its kind.
        end: when the next one begins, in seconds since 1970.
    """

    name: str
    number: int
    end: int

    @classmethod
    def at(cls, name: str, seconds: float) -> Period:
        """Return the period of the kind *name* at the time *seconds*."""
        if name == "month":
            day = datetime.fromtimestamp(seconds, UTC)
            number = day.year * 12 + day.month  # that of the month after, as months count from 1
            return cls(name, number, int(datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp()))
        length = {"minute": 60, "day": 86400}[name]
        number = int(seconds) // length
        return cls(name, number, (number + 1) * length)


@attrs.frozen
class Reservation:
    """The part of a key's budgets that is set aside for a request.

    Attributes:
        amount: in millionths of a US dollar.
        periods: the periods with a budget that it is part of.
    """

    amount: int = 0
    periods: tuple[Period, ...] = ()


class Quotas:
    """The use of the callers' limits.

    Args:
        counters: the counters.
        clock: returns seconds since 1970.
    """

    def __init__(self, counters: Counters, clock: Callable[[], float] = time) -> None:
        self._counters = counters
        self._clock = clock
        self._running: Counter[str | None] = Counter()  # the running requests by the name of the key

    @contextmanager
    def place(self, caller: Caller) -> Iterator[None]:
        """Reserve a place for one more request of *caller*.

        Raises:
            Refusal: the key has reached its limit of concurrent requests.
        """
        max_requests = None if caller.key is None else caller.key.concurrent_requests
        if max_requests is not None and self._running[caller.name] >= max_requests:
            message = f"the key's limit: more than {max_requests} requests at once"
            raise Refusal(ErrorKind.RATE_LIMIT, message, code="rate_limit_exceeded", retry_after=1)
        self._running[caller.name] += 1
        try:
            yield
        finally:
            self._running[caller.name] -= 1

    async def admit(self, caller: Caller, dollars: float = 0.0) -> Reservation:
        """Count a request of *caller*, and reserve the *dollars* that it may cost. :meth:`spend` settles them.

        Raises:
            Refusal: a limit is reached, or the counts are not available.
        """
        key = caller.key
        if key is None or not key.is_limited:
            return Reservation()
        minute = self._now("minute")
        max_tokens = key.tokens_per_minute
        if max_tokens is not None and await self._used(caller, "tokens", minute, 0) >= max_tokens:
            raise self._over(f"more than {max_tokens} tokens a minute", minute)
        max_requests = key.requests_per_minute
        if max_requests is not None and await self._used(caller, "requests", minute, 1) > max_requests:
            raise self._over(f"more than {max_requests} requests a minute", minute)
        return await self._reserve(caller, dollars, key.budgets)

    async def _reserve(self, caller: Caller, dollars: float, budgets: Mapping[str, float]) -> Reservation:
        reservation = Reservation(math.ceil(dollars * _MICRO))
        amount = reservation.amount
        for name, budget in budgets.items():
            period, budget_micros = self._now(name), budget * _MICRO
            total = await self._used(caller, "cost", period, amount)
            reservation = Reservation(amount, (*reservation.periods, period))
            if total > budget_micros or total - amount >= budget_micros:
                await self._settle(caller, reservation, 0)
                ending = f"has not the ${dollars:.2f} left that this request may cost"
                if total - amount >= budget_micros:
                    ending = "is used up"
                raise self._over(f"the budget of the {name} {ending}", period, code="insufficient_quota")
        return reservation

    async def spend(
        self, caller: Caller, tokens: int, dollars: float, reserved: Reservation | None = None
    ) -> None:
        """Count the use of an answer to *caller* in place of what was *reserved* for it.

        If the counters are not available, it is not counted.
        """
        key = caller.key
        if key is None:
            return
        if reserved is None or not reserved.periods:
            reserved = Reservation(0, tuple(map(self._now, key.budgets)))
        try:
            if key.tokens_per_minute is not None and tokens:
                await self._used(caller, "tokens", self._now("minute"), tokens)
            await self._settle(caller, reserved, round(dollars * _MICRO))
        except CountError:
            pass  # the next request is refused while they are away

    async def _settle(self, caller: Caller, reserved: Reservation, amount: int) -> None:
        for period in reserved.periods if amount != reserved.amount else ():
            await self._used(caller, "cost", period, amount - reserved.amount)

    def _now(self, name: str) -> Period:
        return Period.at(name, self._clock())

    async def _used(self, caller: Caller, counter_name: str, period: Period, amount: int) -> int:
        kind = f"{counter_name}-month" if period.name == "month" else counter_name
        return await self._counters.add(f"{kind}:{period.number}:{caller.name}", amount, period.end)

    def _over(self, excess: str, period: Period, code: str = "rate_limit_exceeded") -> Refusal:
        wait_seconds = period.end - int(self._clock())
        return Refusal(
            ErrorKind.RATE_LIMIT, f"the key's limit: {excess}", code=code, retry_after=wait_seconds
        )


# --------------------------------------------------------------------------------- routing
# Finds the service for the name of a model, and what its answers cost. Tokens that no server has counted are estimated.


_ANSWER_TOKENS: Final = 16384
"""The tokens to reserve for an answer without ``max_tokens``, if it is unknown how long the model's answers may be."""
_NOT_DEFAULTS = ("messages", "model", "stream", "provider", "provider_options", "extra_headers")


@attrs.frozen(eq=False)
class ModelRoute:
    """The route of requests for a model.

    Attributes:
        name: the name of the model in the file, also used in metrics and logs. A client cannot make up another one.
        model: the section of the file.
        first: the endpoints that may be asked first.
        services: their services, in this order, with their weights.
        targets: the endpoints of each of these services, in the order in which it asks them.
        defaults: options for requests without them.
        options: additional options for each provider.
        passes_name: whether the endpoints are asked for the model by the client's name for it.
        is_mixed: whether the model has several providers, so that opaque values need the mark of their owner.
        native: the routes for clients whose format an endpoint has besides its own one. Empty if the route is mixed.
        pinned: the routes to one of several servers each, by the name of the server.
        lanes: the native lanes, by their service and what :func:`lane_key` returns for their requests. ``None`` for requests
            that are known to have none.
        foreign_forms: the formats of clients that are known to have none: no server of a request was asked in them.
    """

    name: str
    model: Model
    first: tuple[Target, ...]
    services: tuple[tuple[LLMService, float], ...]
    targets: tuple[tuple[Target, ...], ...]
    defaults: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]
    passes_name: bool
    is_mixed: bool
    native: Mapping[WireForm, ModelRoute] = attrs.field(factory=dict)
    pinned: Mapping[str, ModelRoute] = attrs.field(factory=dict)
    lanes: dict[tuple[LLMService, bytes], Lane | None] = attrs.field(factory=dict, init=False)
    foreign_forms: set[WireForm] = attrs.field(factory=set, init=False)

    def keeps(self, form: WireForm) -> bool:
        """Return whether a server speaks *form*. Others get nothing that another one keeps."""
        return any(target.provider == form.provider for target in self.model.endpoints)

    def reasons(self, form: WireForm, name: str) -> bool:
        """Return whether a server that speaks *form* may have a model that reasons, if the client calls it *name*."""
        return any(
            target.provider == form.provider and _may_reason(target, target.model or name)
            for target in self.model.endpoints
        )

    def at(self, server: str | None) -> ModelRoute:
        """Return the route to this *server* alone, or to all of them for ``None``."""
        return self if server is None else self.pinned.get(server, self)

    @property
    def servers(self) -> frozenset[str]:
        """The names of the servers that get the requests. Each service asks all of them, in an order of its own."""
        return self.services[0][0].servers

    def for_form(self, form: WireForm) -> ModelRoute:
        """Return the route for clients of *form*."""
        return self.native.get(form, self)

    def service(self, draw: Callable[[], float] = random.random) -> LLMService:
        """Return the service for one request. *draw* returns a number from 0 to 1, which chooses by weight."""
        return self.services[self.choose(draw)][0]

    def choose(self, draw: Callable[[], float] = random.random) -> int:
        """Return the number of the service for one request."""
        if len(self.services) == 1:
            return 0
        remaining = draw() * sum(weight for _, weight in self.services)
        for number, (_, weight) in enumerate(self.services):
            remaining -= weight
            if remaining < 0:
                return number
        return len(self.services) - 1

    def learn(self, service: LLMService, key: bytes, lane: Lane | None) -> None:
        """Know that requests with this *key* to *service* have this *lane*, or none."""
        if len(self.lanes) >= _MOST_LANES:
            del self.lanes[next(iter(self.lanes))]
        self.lanes[service, key] = lane

    def request(self, asked: ClientRequest, name: str, earlier: Sequence[Turn] = ()) -> ChatRequest:
        """Return *asked*, a request for the model *name* that continues *earlier* turns, in the form for the endpoints.

        Its instructions precede these turns.
        """
        fields: dict[str, Any] = {
            option: value for option, value in self.defaults.items() if getattr(asked, option) in (None, ())
        }
        if self.options:
            options = {provider: dict(given_options) for provider, given_options in self.options.items()}
            for provider, given_options in asked.provider_options.items():
                options[provider] = {**options.get(provider, {}), **given_options.thawed()}
            fields["provider_options"] = options
        if earlier:
            count, own_turns = asked.instruction_count, said_after(earlier, asked)
            fields["messages"] = (*asked.messages[:count], *earlier, *own_turns)
            own_places = asked.places[count:] if own_turns else ()
            earlier_places = ["previous_response_id"] * len(earlier)
            fields["places"] = (*asked.places[:count], *earlier_places, *own_places)
        changed_request = attrs.evolve(asked, **fields) if fields else asked
        return changed_request.for_model(name if self.passes_name else None)

    def retry_options(self, config: Config, repetitions: int) -> CallOptions:
        """Return the options of a call that the client has made *repetitions* times before.

        Those were attempts, too: both together are no more than the gateway makes for a client that repeats nothing.
        """
        if not repetitions:
            return {}
        retry: RetryPolicy = self.model.retry or config.retry
        return {"retry": attrs.evolve(retry, attempts=max(1, retry.attempts - repetitions))}

    def cost(self, response: ChatResponse) -> float | None:
        """Return the cost of *response* in US dollars, or ``None`` if it is unknown.

        It is that of the model that the answer names, or else of the one that was asked for.
        """
        price, usage = self.model.price, response.usage
        if price is not None:
            tokens = (usage.prompt_tokens, usage.completion_tokens)
            per_million = (price.input_per_million, price.output_per_million)
            return sum(count * rate for count, rate in zip(tokens, per_million, strict=True)) / 1e6
        try:
            listed_cost = cost_of(response)
            if listed_cost is None and response.attempts:
                listed_cost = cost_of(attrs.evolve(response, model=response.attempts[-1].model))
        except ConfigurationError:  # without price lists no budget depends on them, see Router
            return None
        return None if listed_cost is None or listed_cost.currency != "USD" else float(listed_cost.amount)

    def cost_of_tokens(self, usage: UsageInfo, target: Target, model: str) -> float | None:
        """Return the cost of *usage* in US dollars if *target* has answered with *model*, or ``None`` if it is unknown."""
        metadata = ResponseMetadata(target.provider, model, timedelta(0))
        message, now = ChatMessage(Role.ASSISTANT, ""), datetime.now(UTC)
        return self.cost(ChatResponse("-", message, FinishReason.STOP, usage, metadata, now, model))

    def most_cost(self, request: ChatRequest, answer_count: int) -> float:
        """Return the most that *answer_count* to *request* may cost in US dollars, at the most expensive endpoint.

        The prompt is estimated by its length. An answer counts with ``max_tokens``, or else with the most tokens that the
        model writes, or with 16,384 tokens if that is unknown.
        """
        prompt_count = prompt_tokens(request)
        costs = []
        for target in self.model.endpoints:
            model = target.model or request.model or self.name
            max_answer_tokens = request.max_tokens or target.max_tokens(model) or _ANSWER_TOKENS
            usage = UsageInfo(prompt_count, max_answer_tokens * answer_count)
            costs.append(self.cost_of_tokens(usage, target, model) or 0.0)
        return max(costs)


def _may_reason(target: Target, model: str) -> bool:
    """Return whether *model* may reason at *target*: its class does, or is unknown."""
    match = match_of(facts_of(registry.mapper(target.provider)), model, target.model_class, target.provider)
    return match is None or match.rules.thinks or bool(match.rules.effort)


def said_after(earlier: Sequence[Turn], asked: ClientRequest) -> tuple[Turn, ...]:
    """Return what *asked* says after *earlier* turns.

    That is nothing if it only wants the last answer to go on, as a paused one does.
    """
    own = asked.messages[asked.instruction_count :]
    is_silent = all(message_of(turn).role is Role.USER and not message_of(turn).content for turn in own)
    return () if earlier and is_silent else own


# The native lane: a request whose servers get the client's own bytes, with their own name of the model. It is neither read
# nor built. What is left out of it, changed or added depends on its options alone, if it says nothing but texts. So the
# first request with these options goes the whole way, and shows what becomes of the others.


_MOST_LANES: Final = 64
_MOST_OPTIONS_BYTES: Final = 1 << 16
_CONVERSATIONS: Final = {
    WireForm.OPENAI_CHAT: "messages",
    WireForm.OPENAI_RESPONSES: "input",
    WireForm.ANTHROPIC: "messages",
    WireForm.OLLAMA: "messages",
}
"""The field with the conversation, of the formats with a lane: Gemini's has the model in its path, the others a prompt."""
_HALF_PAIR: Final = re.compile(rb"\\u[dD]")


def lane_key(
    form: WireForm, body: bytes, fields: Mapping[str, Any], switches: Mapping[str, str]
) -> bytes | None:
    """Return what requests of one lane share: all but the texts. ``None`` if the request *fields* needs the whole way.

    Args:
        form: the client's form.
        body: the request's bytes.
        fields: the JSON object in them.
        switches: the options in its headers.
    """
    name = _CONVERSATIONS.get(form)
    order = None if name is None else _order_of(fields.get(name))
    if order is None or _HALF_PAIR.search(body):
        return None
    options = dump_json([form.key, order, switches, {one: fields[one] for one in fields if one != name}])
    return sha256(options).digest() if len(options) <= _MOST_OPTIONS_BYTES else None


def _order_of(conversation: Any) -> str | None:
    """Return who speaks in *conversation*, as far as it matters, or ``None`` if it holds more than texts in turn.

    The user begins and ends it, perhaps behind a message of the system. Each message is a role and a text.
    """
    if type(conversation) is str:
        return "text" if conversation and not conversation.isspace() else None
    roles = []
    for message in conversation if type(conversation) is list else ():
        text = message.get("content") if type(message) is dict and len(message) == 2 else None
        if type(text) is not str or not text or text.isspace():
            return None
        roles.append(message.get("role"))
    is_led = roles[:1] == ["system"]
    speakers = roles[is_led:]
    if len(speakers) % 2 == 0 or any(
        role != ("assistant" if number % 2 else "user") for number, role in enumerate(speakers)
    ):
        return None
    return f"{'led ' if is_led else ''}{'talk' if len(speakers) > 1 else 'question'}"


def _changes(fields: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of *sent* that differ from the client's *fields*, or ``None`` if it lacks one that says anything."""
    if any(name not in sent and not (name == "stream" and fields[name] is False) for name in fields):
        return None
    return {name: value for name, value in sent.items() if name not in fields or fields[name] != value}


@attrs.frozen
class Lane:
    """The way of requests that say the same apart from their texts.

    Attributes:
        incoming: one of them as it was read, without its conversation.
        request: the same for the service. Its HTTP requests have no content.
        changes: the fields that each server gets otherwise than the client has sent them.
    """

    incoming: Incoming
    request: PreparedRequest
    changes: Mapping[int, Mapping[str, Any]]

    @classmethod
    def of(
        cls,
        route: ModelRoute,
        fields: Mapping[str, Any],
        incoming: Incoming,
        request: PreparedRequest,
        dropped: Sequence[str],
        *,
        is_kept: bool,
    ) -> Lane | None:
        """Return the lane for requests that differ by their texts alone from one that went the whole way, if they have one.

        Args:
            route: the route of its model.
            fields: the JSON object that the client sent.
            incoming: the request as it was read.
            request: the request for the service.
            dropped: what the gateway itself has left out.
            is_kept: whether the gateway keeps the answer.
        """
        prepared, failures = request.prepared
        built = [one.built for one in prepared.values()]
        changes = {number: _changes(fields, one.built.body) for number, one in prepared.items()}
        conditions = (
            not route.is_mixed,  # all servers are of one provider: the answer needs no seal
            not is_kept,  # nor does the gateway keep it
            not incoming.state,  # the request names nothing that is kept
            not failures,  # every server takes it
            all(_speaks(one, incoming.form) for one in built),  # and is asked in the client's format
            not dropped,  # nothing was left out, added or changed on the way, by the gateway
            not any(one.adaptations or one.tool_names for one in built),  # or in the request of a server
            # but the name of the model, and that a stream ends with counts
            all(one is not None and one.keys() <= {"model", "stream_options"} for one in changes.values()),
        )
        if not all(conditions):
            if built and not any(_speaks(one, incoming.form) for one in built):
                route.foreign_forms.add(incoming.form)
            return None
        asked, texts = incoming.request, (ChatMessage.user("-"),)
        said = {name: value for name, value in fields.items() if name != _CONVERSATIONS[incoming.form]}
        read = altered(asked, messages=texts, said=said, asked=altered(asked.asked, messages=texts))
        bare = {
            number: altered(one, built=altered(one.built, body={}), content=b"")
            for number, one in prepared.items()
        }
        request = altered(request, messages=texts, prepared=(bare, {}))
        return cls(altered(incoming, request=read), request, {n: one or {} for n, one in changes.items()})

    def take(self, body: bytes, fields: Mapping[str, Any]) -> PreparedRequest:
        """Return the request with the *fields* in *body* for the service."""
        prepared = {
            number: Prepared(one.built, _content(body, fields, self.changes[number]), one.url, one.headers)
            for number, one in self.request.prepared[0].items()
        }
        return altered(self.request, prepared=(prepared, {}))


def _speaks(built: HTTPRequest, form: WireForm) -> bool:
    return built.path.partition("?")[0].endswith(form.paths)


def _content(body: bytes, fields: Mapping[str, Any], changes: Mapping[str, Any]) -> bytes:
    if changes.keys() <= {"model"}:
        return named(body, fields, changes.get("model"))
    return dump_json({**fields, **changes})


class Router:
    """The models of a gateway, each with its services. Closing the router closes them.

    Args:
        config: the configuration.
        observers: are notified of every call.
        options: further arguments for each :class:`~crosswalk.service.LLMService`.

    Raises:
        ConfigurationError: a provider, an endpoint or the defaults of a model are impossible. The message names the model.
        PluginError: a plugin is broken.
    """

    def __init__(self, config: Config, observers: Iterable[Observer] = (), **options: Any) -> None:
        self._observers = tuple(observers)
        self._options = options
        self._services: dict[Any, LLMService] = {}
        self._failures: dict[Any, ServerFailures] = {}
        self._routes: dict[str, ModelRoute] = {}
        self._names: dict[str, str] = {}
        for name, model in config.models.items():
            self._routes[name] = self._route(name, model, config)
            self._names.update(dict.fromkeys((name, *model.aliases), name))
        _check_prices(config)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that clients may use, including aliases and patterns."""
        return tuple(self._names)

    def find(self, name: str) -> ModelRoute | None:
        """Return the route for the model *name*, or ``None`` if the file has no such model."""
        model_name = self._names.get(name)
        if model_name is None:
            patterns = [one for one in self._names if one.endswith("*") and name.startswith(one[:-1])]
            model_name = self._names[max(patterns, key=len)] if patterns else None
        return None if model_name is None else self._routes[model_name]

    async def aclose(self) -> None:
        """End all running calls and close all connections."""
        async with AsyncExitStack() as stack:
            for service in self._services.values():
                stack.push_async_callback(service.aclose)

    def _route(self, name: str, model: Model, config: Config) -> ModelRoute:
        passes_name = name.endswith("*") and all(target.model is None for target in model.endpoints)
        try:
            ChatRequest("-", **_defaults(model))
            _check_targets(model, names_models=not name.endswith("*") or passes_name)
            targets = model.endpoints
            if not passes_name:
                targets = tuple(attrs.evolve(target, model=target.model or name) for target in targets)
            first_targets = [target for target in targets if target.weight is not None] or targets[:1]
            orders = tuple(_led_by(one, targets) for one in first_targets)
            services = tuple(
                (self._service(order, model, config), one.weight or 1.0)
                for one, order in zip(first_targets, orders, strict=True)
            )
            for target in targets:
                target.max_tokens(
                    target.model or name
                )  # so that a class that is not there is found at the start
        except (ConfigurationError, ResponseValidationError, UnknownProviderError) as error:
            place = _place_of(error, model)
            raise ConfigurationError(f"models.{name}: {error}", key=f"models.{name}{place}") from None
        options = {target.provider: target.options for target in model.endpoints if target.options}
        is_mixed = len({target.provider for target in targets}) > 1
        route = ModelRoute(
            name,
            model,
            tuple(first_targets),
            services,
            orders,
            dict(model.defaults),
            options,
            passes_name,
            is_mixed,
        )
        native_routes = {}
        for form in () if route.is_mixed else WireForm:
            endpoints = tuple(target.in_format(form) for target in model.endpoints)
            if endpoints != model.endpoints:
                native_routes[form] = self._route(name, attrs.evolve(model, endpoints=endpoints), config)
        pinned_routes = {}
        for target in targets if len(targets) > 1 else ():
            pinned_route = self._route(name, attrs.evolve(model, endpoints=(target,)), config)
            (server,) = pinned_route.servers
            pinned_routes[server] = attrs.evolve(pinned_route, is_mixed=is_mixed)
        return attrs.evolve(route, native=native_routes, pinned=pinned_routes)

    def _service(self, targets: tuple[Target, ...], model: Model, config: Config) -> LLMService:
        """Return the service for *targets*, in this order. Models with the same targets share one."""
        timeouts: Timeouts = model.timeouts or config.timeouts
        retry: RetryPolicy = model.retry or config.retry
        on_unsupported = model.on_unsupported or config.on_unsupported
        max_bytes = config.limits.answer_bytes
        endpoints = [target.endpoint() for target in targets]
        headers = [tuple(target.headers.items()) for target in targets]
        key = (*endpoints, *headers, timeouts, retry, on_unsupported)
        if key not in self._services:
            self._services[key] = LLMService(
                *endpoints,
                timeout=timeouts,
                retry=retry,
                on_unsupported="raise" if on_unsupported == "refuse" else "drop",
                limits=Limits(line_bytes=max_bytes, total_bytes=max_bytes),
                observers=self._observers,
                failures=[self._failures.setdefault(key, ServerFailures()) for key in _server_keys(targets)],
                transport="aiohttp",  # many calls at once
                **self._options,
            )
        return self._services[key]


def _server_keys(targets: Sequence[Target]) -> list[tuple[Any, ...]]:
    """Return what tells the server of each of *targets* from others: its address and key, whatever the name of the model.

    Several models of one server are alternatives to each other, so each of them fails for itself.
    """
    servers = [
        (
            (target.base_url or target.provider).rstrip("/").removesuffix("/v1"),
            target.api_key or Secret("none"),
        )
        for target in targets
    ]
    return [
        server if servers.count(server) == 1 else (*server, target.provider, target.model)
        for server, target in zip(servers, targets, strict=True)
    ]


def _led_by(first: Target, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    return (first, *(target for target in targets if target is not first))


def _check_targets(model: Model, *, names_models: bool) -> None:
    if not names_models and any(target.model is None for target in model.endpoints):
        raise ConfigurationError("either each endpoint names a model, or none does")
    for one in model.endpoints:
        for other in model.endpoints:
            if one.provider == other.provider and one.options != other.options:
                raise ConfigurationError(f"options: two endpoints of {one.provider} have different ones")


def _defaults(model: Model) -> dict[str, Any]:
    wrong_name = next((name for name in model.defaults if name in _NOT_DEFAULTS), None)
    if wrong_name is None:
        wrong_name = next(
            (name for name in model.defaults if name not in attrs.fields_dict(ChatRequest)), None
        )
    if wrong_name is not None:
        key = f"defaults.{wrong_name}"
        raise ConfigurationError(f"defaults: no option of a request is called {wrong_name!r:.60}", key=key)
    return dict(model.defaults)


def _place_of(error: CrosswalkError, model: Model) -> str:
    """Return the place of *error* below *model* in the file, with the dot before it, or nothing for the model itself."""
    if isinstance(error, UnknownProviderError):
        providers = [target.provider for target in model.endpoints]
        number = next(number for number, one in enumerate(providers) if f"provider {one!r}" in str(error))
        return f".endpoints.{number}.provider"
    return f".{error.key}" if isinstance(error, ConfigurationError) and error.key else ""


def _check_prices(config: Config) -> None:
    """Refuse budgets and costs that cannot be counted.

    Raises:
        ConfigurationError: a model without a price is to be counted, and there are no price lists.
    """
    unpriced_models = [name for name, model in config.models.items() if model.price is None]
    limited_keys = [key for key in config.keys.values() if key.budgets]
    name = next(
        (one for one in unpriced_models if config.costs or any(key.may_ask(one) for key in limited_keys)),
        None,
    )
    if name is None:
        return
    try:
        import genai_prices  # noqa: F401  # whether it is there
    except ImportError:
        raise ConfigurationError(
            f"models.{name}: budgets need prices: give the model its price, or pip install 'crosswalk-llm[prices]'",
            key=f"models.{name}",
        ) from None


_BYTES_PER_TOKEN: Final = 4
"""The bytes of a token, about: a limit that a client passes by leaving early would be none."""
_SAID_TYPES: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.TOOL_CALL, SegmentType.REFUSAL)
_COUNT_PATHS: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
_MISSING_MARKS: Final = (Provenance.ABSENT, Provenance.CUT)


def prompt_tokens(request: ChatRequest) -> int:
    """Estimate the tokens of the conversation and the tools in *request* by their length. Media do not count."""
    messages = [message_of(turn) for turn in request.messages]
    texts = [message.text for message in messages]
    texts += [call.arguments for message in messages for call in message.tool_calls or ()]
    tools = [[tool.name, tool.description, tool.parameters.thawed()] for tool in request.tools]
    return _tokens([*texts, *(dump_json(tool).decode() for tool in tools)])


def by_length(response: ChatResponse, asked: Iterable[ChatMessage | ChatResponse]) -> ChatResponse:
    """*response* with counts by length, where the server has not counted to the end, or less than that.

    Args:
        response: the answer; one that was counted stays as it is, and so does one that says nothing, such as most errors.
        asked: the conversation that it answers.
    """
    usage, metadata = response.usage, response.metadata
    is_cut = response.finish_reason in (FinishReason.ERROR, FinishReason.CANCELLED)
    if not is_cut and not _lacks_counts(response):
        return response
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    texts = [one.content for answer in answers for one in answer.segments if one.type in _SAID_TYPES]
    if not any(texts):
        return response
    counted_usage = attrs.evolve(
        usage,
        prompt_tokens=max(usage.prompt_tokens, _tokens(message_of(turn).text for turn in asked)),
        completion_tokens=max(usage.completion_tokens, _tokens(texts)),
    )
    provenance = {path: mark for path, mark in metadata.provenance.items() if path not in _COUNT_PATHS}
    return attrs.evolve(response, usage=counted_usage, metadata=attrs.evolve(metadata, provenance=provenance))


def is_counted(response: ChatResponse) -> bool:
    """Return whether anybody has counted tokens of *response*: zeros that no server has sent are no counts."""
    return response.usage.total_tokens > 0 or not _lacks_counts(response)


def _lacks_counts(response: ChatResponse) -> bool:
    return any(response.metadata.provenance.get(count) in _MISSING_MARKS for count in _COUNT_PATHS)


def _tokens(texts: Iterable[str]) -> int:
    return -(-sum(len(text.encode()) for text in texts) // _BYTES_PER_TOKEN)

"""Finds the service for the name of a model, and what its answers cost. Tokens that no server has counted are estimated."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import attrs

from crosswalk.convert import WireForm
from crosswalk.errors import ConfigurationError, ResponseValidationError, UnknownProviderError
from crosswalk.prices import cost_of
from crosswalk.service import ChatRequest, LLMService, Observer, RetryPolicy, Timeouts, Turn, message_of
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
from crosswalk.wire import Limits
from crosswalk_serve.config import Config, Model, Target

_ANSWER_TOKENS: Final = 4096
"""The tokens to reserve for an answer if neither the request nor the model's defaults have ``max_tokens``."""
_NOT_DEFAULTS = ("messages", "model", "stream", "provider", "provider_options")


@attrs.frozen(eq=False)
class Route:
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
        native: the routes for clients whose format an endpoint has besides its own one. Empty if the route is mixed.
    """

    name: str
    model: Model
    first: tuple[Target, ...]
    services: tuple[tuple[LLMService, float], ...]
    targets: tuple[tuple[Target, ...], ...]
    defaults: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]
    passes_name: bool
    native: Mapping[WireForm, Route] = attrs.field(factory=dict)

    @property
    def is_mixed(self) -> bool:
        """Whether it has several providers, so that opaque values need the mark of their owner."""
        return len({target.provider for target in self.model.endpoints}) > 1

    def keeper(self, form: WireForm) -> str | None:
        """Return the name of the one server that gets all requests, or ``None`` if there are several.

        It is empty if none of them speaks *form*: such servers get nothing that another one keeps.
        """
        if all(target.provider != form.provider for target in self.model.endpoints):
            return ""
        servers = {
            f"{target.provider} {target.base_url} {'' if target.api_key is None else target.api_key.reveal()}"
            for target in self.model.endpoints
        }
        return sha256(servers.pop().encode()).hexdigest()[:32] if len(servers) == 1 else None

    def for_form(self, form: WireForm) -> Route:
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

    def request(self, asked: ChatRequest, name: str, earlier: Iterable[Turn] = ()) -> ChatRequest:
        """Return *asked*, a request for the model *name* that continues *earlier* turns, in the form for the endpoints."""
        fields: dict[str, Any] = {
            option: value for option, value in self.defaults.items() if getattr(asked, option) in (None, ())
        }
        if self.options:
            options = {provider: dict(given) for provider, given in self.options.items()}
            for provider, given in asked.provider_options.items():
                options[provider] = {**options.get(provider, {}), **given.thawed()}
            fields["provider_options"] = options
        if earlier:
            fields["messages"] = (*earlier, *asked.messages)
        changed = attrs.evolve(asked, **fields) if fields else asked
        return changed.for_model(name if self.passes_name else None)

    def cost(self, response: ChatResponse) -> float:
        """Return the cost of *response* in US dollars, as far as known."""
        price, usage = self.model.price, response.usage
        if price is not None:
            tokens = (usage.prompt_tokens, usage.completion_tokens)
            per_million = (price.input_per_million, price.output_per_million)
            return sum(count * rate for count, rate in zip(tokens, per_million, strict=True)) / 1e6
        try:
            listed = cost_of(response)
        except ConfigurationError:  # without price lists no budget depends on them, see Router
            return 0.0
        return float(listed.amount) if listed is not None and listed.currency == "USD" else 0.0

    def cost_of_tokens(self, usage: UsageInfo, target: Target, model: str) -> float:
        """Return the cost of *usage* in US dollars, as far as known, if *target* has answered with *model*."""
        metadata = ResponseMetadata(target.provider, model, timedelta(0))
        message, now = ChatMessage(Role.ASSISTANT, ""), datetime.now(UTC)
        return self.cost(ChatResponse("-", message, FinishReason.STOP, usage, metadata, now, model))

    def most_cost(self, request: ChatRequest, answers: int) -> float:
        """Return the most that *answers* to *request* may cost in US dollars, at the most expensive endpoint.

        The prompt is estimated by its length. An answer counts with ``max_tokens``, or else with 4,096 tokens.
        """
        usage = UsageInfo(prompt_tokens(request), (request.max_tokens or _ANSWER_TOKENS) * answers)
        return max(
            self.cost_of_tokens(usage, target, target.model or request.model or self.name)
            for target in self.model.endpoints
        )


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
        self._routes: dict[str, Route] = {}
        self._names: dict[str, str] = {}
        for name, model in config.models.items():
            self._routes[name] = self._route(name, model, config)
            self._names.update(dict.fromkeys((name, *model.aliases), name))
        _check_prices(config)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that clients may use, including aliases and patterns."""
        return tuple(self._names)

    def find(self, name: str) -> Route | None:
        """Return the route for the model *name*, or ``None`` if the file has no such model."""
        result = self._names.get(name)
        if result is None:
            fitting = [one for one in self._names if one.endswith("*") and name.startswith(one[:-1])]
            result = self._names[max(fitting, key=len)] if fitting else None
        return None if result is None else self._routes[result]

    async def aclose(self) -> None:
        """End all running calls and close all connections."""
        async with AsyncExitStack() as stack:
            for service in self._services.values():
                stack.push_async_callback(service.aclose)

    def _route(self, name: str, model: Model, config: Config) -> Route:
        passes_name = name.endswith("*") and all(target.model is None for target in model.endpoints)
        try:
            ChatRequest("-", **_defaults(model))
            _check_targets(model, names_models=not name.endswith("*") or passes_name)
            targets = model.endpoints
            if not passes_name:
                targets = tuple(attrs.evolve(target, model=target.model or name) for target in targets)
            first = [target for target in targets if target.weight is not None] or targets[:1]
            orders = tuple(_led_by(one, targets) for one in first)
            services = tuple(
                (self._service(order, model, config), one.weight or 1.0)
                for one, order in zip(first, orders, strict=True)
            )
        except (ConfigurationError, ResponseValidationError, UnknownProviderError) as error:
            raise ConfigurationError(f"models.{name}: {error}", key=f"models.{name}") from None
        options = {target.provider: target.options for target in model.endpoints if target.options}
        route = Route(name, model, tuple(first), services, orders, dict(model.defaults), options, passes_name)
        native = {}
        for form in () if route.is_mixed else WireForm:
            endpoints = tuple(target.in_format(form) for target in model.endpoints)
            if endpoints != model.endpoints:
                native[form] = self._route(name, attrs.evolve(model, endpoints=endpoints), config)
        return attrs.evolve(route, native=native)

    def _service(self, targets: tuple[Target, ...], model: Model, config: Config) -> LLMService:
        """Return the service for *targets*, in this order. Models with the same targets share one."""
        timeouts: Timeouts = model.timeouts or config.timeouts
        retry: RetryPolicy = model.retry or config.retry
        on_unsupported = model.on_unsupported or config.on_unsupported
        most = config.limits.answer_bytes
        endpoints = [target.endpoint() for target in targets]
        headers = [tuple(target.headers.items()) for target in targets]
        key = (*endpoints, *headers, timeouts, retry, on_unsupported)
        if key not in self._services:
            self._services[key] = LLMService(
                *endpoints,
                timeout=timeouts,
                retry=retry,
                on_unsupported="raise" if on_unsupported == "refuse" else "drop",
                limits=Limits(line_bytes=most, total_bytes=most),
                observers=self._observers,
                transport="aiohttp",  # many calls at once
                **self._options,
            )
        return self._services[key]


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
    wrong = next((name for name in model.defaults if name in _NOT_DEFAULTS), None)
    if wrong is None:
        wrong = next((name for name in model.defaults if name not in attrs.fields_dict(ChatRequest)), None)
    if wrong is not None:
        raise ConfigurationError(f"defaults: no option of a request is called {wrong!r:.60}")
    return dict(model.defaults)


def _check_prices(config: Config) -> None:
    """Refuse budgets that cannot be counted.

    Raises:
        ConfigurationError: a key with a budget may use a model without a price, and there are no price lists.
    """
    unpriced = [name for name, model in config.models.items() if model.price is None]
    limited = [key for key in config.keys.values() if key.budget_per_day is not None]
    name = next((name for name in unpriced if any(key.may_ask(name) for key in limited)), None)
    if name is None:
        return
    try:
        import genai_prices  # noqa: F401  # whether it is there
    except ImportError:
        raise ConfigurationError(
            f"models.{name}: budgets need prices: give the model its price, or pip install 'crosswalk-llm[prices]'",
            key=f"models.{name}",
        ) from None


_BYTES: Final = 4
"""The bytes of a token, about: a limit that a client passes by leaving early would be none."""
_SAID: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.TOOL_CALL, SegmentType.REFUSAL)
_COUNTS: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
_NONE: Final = (Provenance.ABSENT, Provenance.CUT)


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
    if not is_cut and not any(metadata.provenance.get(count) in _NONE for count in _COUNTS):
        return response
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    raw = [one.content for answer in answers for one in answer.segments if one.type in _SAID]
    if not any(raw):
        return response
    counts = attrs.evolve(
        usage,
        prompt_tokens=max(usage.prompt_tokens, _tokens(message_of(turn).text for turn in asked)),
        completion_tokens=max(usage.completion_tokens, _tokens(raw)),
    )
    known = {path: mark for path, mark in metadata.provenance.items() if path not in _COUNTS}
    return attrs.evolve(response, usage=counts, metadata=attrs.evolve(metadata, provenance=known))


def _tokens(texts: Iterable[str]) -> int:
    return -(-sum(len(text.encode()) for text in texts) // _BYTES)

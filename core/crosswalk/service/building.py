"""From a canonical request to a provider's HTTP request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import attrs

from crosswalk.errors import CrosswalkError, PluginError
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.service.errors import UnsupportedRequestError
from crosswalk.service.ids import with_fitting_ids, with_fitting_names
from crosswalk.service.request import ChatRequest, Dropped, HTTPRequest
from crosswalk.service.rounds import with_whole_rounds
from crosswalk.types._value import altered
from crosswalk.types.json import dump_json, thaw

__all__ = ["build_http_request"]

T = TypeVar("T")

OnUnsupported: TypeAlias = Literal["raise", "drop"]


def build_http_request(
    request: ChatRequest,
    provider: str,
    *,
    on_unsupported: OnUnsupported = "raise",
    registry: Registry | None = None,
) -> HTTPRequest:
    """What would be sent to *provider* for *request*, without credentials; nothing is sent.

    Args:
        request: the canonical request; it names a model.
        provider: the provider id.
        on_unsupported: ``"raise"`` for an option that the provider cannot express, or ``"drop"`` it: it is then
            recorded in the result's ``dropped``. What is said in messages is never dropped.
        registry: where to look up the provider; ``None`` for the installed ones.

    Raises:
        UnsupportedRequestError: the provider cannot express the request, or no model is named.
        UnknownProviderError: no such provider. PluginError: it is broken.
    """
    known = default_registry if registry is None else registry
    return build(request, known.mapper(provider), on_unsupported)[0]


def build(
    request: ChatRequest, mapper: Mapper, on_unsupported: OnUnsupported, *, model: str | None = None
) -> tuple[HTTPRequest, bytes]:
    """The HTTP request and its body's bytes, for *model* if none is named; see :func:`build_http_request`."""
    provider = mapper.provider
    request = altered(request, model=request.model or model or None, provider=provider)
    if mapper.build_request is None:
        raise UnsupportedRequestError("its plugin builds no requests", provider=provider)
    if request.model is None:
        raise UnsupportedRequestError("no model is named", provider=provider, options=["model"])
    info = mapper.info
    request = _named(with_whole_rounds, request, provider)
    if info.call_ids is not None:
        request = altered(request, messages=with_fitting_ids(request.messages, info.call_ids))
    if info.call_names is not None:
        request = altered(request, messages=with_fitting_names(request.messages, info.call_names))
    foreign = [tool for tool in request.hosted_tools if tool.kind not in info.hosted_tools]
    if foreign:
        known = tuple(tool for tool in request.hosted_tools if tool not in foreign)
        request = altered(request, hosted_tools=known)
    built = _built(request, mapper)
    if foreign:
        missing = [Dropped("hosted_tools", f"the API runs no {tool.kind}") for tool in foreign]
        built = attrs.evolve(built, dropped=(*built.dropped, *missing))
    if built.dropped and on_unsupported == "raise":
        what = "; ".join(f"{dropped.option} ({dropped.reason})" for dropped in built.dropped)
        options = [dropped.option for dropped in built.dropped]
        raise UnsupportedRequestError(f"it cannot express {what}", provider=provider, options=options)
    more = request.provider_options.get(provider)
    if more:
        body = _merged(built.body, thaw(more), lambda: _built(_bare(provider), mapper).body, provider)
        built = attrs.evolve(built, body=body)
    try:
        return built, dump_json(built.body)
    except TypeError as error:
        # Its message is orjson's own and quotes nothing: a lone surrogate in a text, thousands of digits.
        raise UnsupportedRequestError(f"the request is no JSON: {error}", provider=provider) from None


def _built(request: ChatRequest, mapper: Mapper) -> HTTPRequest:
    """What the plugin makes of *request*."""
    assert mapper.build_request is not None, "the caller has looked"
    try:
        built = _named(mapper.build_request, request, mapper.provider)
    except CrosswalkError:
        raise
    except Exception as error:
        raise _broken(mapper.provider, f"build_request failed with {type(error).__name__}") from error
    if not isinstance(built, HTTPRequest):
        raise _broken(mapper.provider, f"build_request gives {type(built).__name__}, not HTTPRequest")
    return built


def _named(work: Callable[[ChatRequest], T], request: ChatRequest, provider: str) -> T:
    """What *work* makes of *request*; where it refuses that, the error says for whom."""
    try:
        return work(request)
    except UnsupportedRequestError as error:
        if error.provider is not None:
            raise
        raise UnsupportedRequestError(str(error), provider=provider, options=error.options) from None


def _bare(provider: str) -> ChatRequest:
    """A request that says nothing: what its body has all the same is the plugin's default."""
    return ChatRequest("-", model="-", provider=provider)


def _merged(
    body: dict[str, Any], more: dict[str, Any], defaults: Callable[[], Any], provider: str
) -> dict[str, Any]:
    """*body* with *more* in it: objects key by key, lists one behind the other, and in the place of *defaults*.

    Raises:
        UnsupportedRequestError: *more* has another value for what the request says.
    """
    merged = dict(body)
    for name, value in more.items():
        old = merged.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[name] = _merged(old, value, partial(_inside, defaults, name), provider)
        elif isinstance(old, list) and isinstance(value, list):
            merged[name] = [*old, *value]
        elif name in merged and old != value and _inside(defaults, name) != old:
            option = f"provider_options[{provider!r}][{name!r:.60}]"
            raise UnsupportedRequestError(
                f"{option} says otherwise than the request", provider=provider, options=[option]
            )
        else:
            merged[name] = value
    return merged


def _inside(defaults: Callable[[], Any], name: str) -> Any:
    found = defaults()
    return found.get(name) if isinstance(found, dict) else None


def _broken(provider: str, cause: str) -> PluginError:
    return PluginError(f"provider {provider!r}: {cause}", plugin=provider)

"""Builds a provider's HTTP request from a canonical request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

import attrs

from crosswalk.errors import CrosswalkError, PluginError
from crosswalk.plugin.registry import Mapper, Registry, registry as default_registry
from crosswalk.request import ChatRequest, Dropped, HTTPRequest, UnsupportedRequestError
from crosswalk.service.options import unsaid, with_extra_options
from crosswalk.service.way_back.history import with_fitting_ids, with_fitting_names, with_whole_rounds
from crosswalk.service.way_back.missing import not_sent
from crosswalk.service.way_back.sorting import with_own_parts
from crosswalk.types.json import dump_json, thaw
from crosswalk.types.values import altered
from crosswalk.wire.options import format_of_path

T = TypeVar("T")

OnUnsupported: TypeAlias = Literal["raise", "drop"]


def build_http_request(
    request: ChatRequest,
    provider: str,
    *,
    on_unsupported: OnUnsupported = "raise",
    registry: Registry | None = None,
) -> HTTPRequest:
    """Return the HTTP request that would be sent to *provider* for *request*, without credentials. Nothing is sent.

    Args:
        request: the canonical request. It names a model.
        provider: the provider id.
        on_unsupported: ``"raise"`` for an option that the provider cannot express, or ``"drop"`` it: it is then
            recorded in the result's ``dropped``. Parts of earlier turns that the provider does not accept are always
            recorded there, and never refuse the request.
        registry: the registry of providers, or ``None`` for the installed ones.

    Raises:
        UnsupportedRequestError: the provider cannot express the request, or no model is named.
        UnknownProviderError: there is no such provider. PluginError: it is broken.
    """
    known = default_registry if registry is None else registry
    return build(request, known.mapper(provider), on_unsupported)[0]


def build(
    request: ChatRequest,
    mapper: Mapper,
    on_unsupported: OnUnsupported,
    *,
    model: str | None = None,
    base_url: str | None = None,
    takes_media: bool = True,
) -> tuple[HTTPRequest, bytes]:
    """Return the HTTP request and its body's bytes. See :func:`build_http_request`.

    Args:
        request: the canonical request.
        mapper: the provider's mapper.
        on_unsupported: as for :func:`build_http_request`.
        model: the model to use if the request names none.
        base_url: the address of the server, or ``None`` if it is not known yet.
        takes_media: whether the model takes images, sounds and files.

    Raises:
        UnsupportedRequestError, PluginError: see :func:`build_http_request`.
    """
    provider = mapper.provider
    request = altered(request, model=request.model or model or None, provider=provider)
    if mapper.build_request is None:
        raise UnsupportedRequestError("its plugin builds no requests", provider=provider)
    if request.model is None:
        raise UnsupportedRequestError(
            f"no model is named; give model=, or the endpoint as '{provider}:MODEL'",
            provider=provider,
            options=["model"],
        )
    access = mapper.info.access
    is_official = access is not None and access.base_url == base_url
    fitted = partial(_fitted, mapper=mapper, is_official=is_official, takes_media=takes_media)
    built = request.built_by(fitted)
    more = thaw(request.provider_options.get(provider) or {})
    if request.reasoning_effort is not None and (path := _other_effort(built, more)) is not None:
        request = altered(request, reasoning_effort=None)
        built = request.built_by(fitted)
        note = Dropped("reasoning_effort", f"provider_options says {path}", refuses=False)
        built = attrs.evolve(built, dropped=(*built.dropped, note))
    refused = [dropped for dropped in built.dropped if dropped.refuses]
    if refused and on_unsupported == "raise":
        what = "; ".join(f"{dropped.option} ({dropped.reason})" for dropped in refused)
        options = [dropped.option for dropped in refused]
        raise UnsupportedRequestError(f"it cannot express {what}", provider=provider, options=options)
    if more:
        body = _merged(
            built.body, more, lambda: _built(_bare(request), mapper).body, (provider,), built.spellings
        )
        built = attrs.evolve(built, body=body)
    try:
        return built, dump_json(built.body)
    except TypeError as error:
        # Its message is orjson's own and quotes nothing: a lone surrogate in a text, thousands of digits.
        raise UnsupportedRequestError(f"the request is no JSON: {error}", provider=provider) from None


def _fitted(request: ChatRequest, mapper: Mapper, *, is_official: bool, takes_media: bool) -> HTTPRequest:
    """Return the plugin's HTTP request for *request*, reduced to the parts, calls, ids and tools that the provider takes."""
    info = mapper.info
    sorted_request, dropped = with_own_parts(
        request, info.way_back, is_official=is_official, takes_media=takes_media
    )
    request = _named(with_whole_rounds, sorted_request, mapper.provider)
    if info.call_ids is not None:
        request = altered(request, messages=with_fitting_ids(request.messages, info.call_ids))
    if info.call_names is not None:
        request = altered(request, messages=with_fitting_names(request.messages, info.call_names))
    foreign = [tool for tool in request.hosted_tools if tool.kind not in info.hosted_tools]
    if foreign:
        known = tuple(tool for tool in request.hosted_tools if tool not in foreign)
        request = altered(request, hosted_tools=known)
    if not info.way_back.takes_custom_calls:
        request = altered(request, tools=tuple(tool.as_function() for tool in request.tools))
    built = with_extra_options(_built(request, mapper), request)
    missing = [Dropped("hosted_tools", f"the API runs no {tool.kind}") for tool in foreign]
    unsent = not_sent(sorted_request, built.body, built.dropped)
    details = unsaid(sorted_request, format_of_path(built.path))
    return attrs.evolve(built, dropped=(*built.dropped, *missing, *dropped, *unsent, *details))


def _built(request: ChatRequest, mapper: Mapper) -> HTTPRequest:
    """Return the plugin's HTTP request for *request*."""
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
    """Return the result of *work* for *request*. If it refuses the request, the error names the provider."""
    try:
        return work(request)
    except UnsupportedRequestError as error:
        if error.provider is not None:
            raise
        raise UnsupportedRequestError(str(error), provider=provider, options=error.options) from None


_INSTEAD_OF_EFFORT: Mapping[str | None, tuple[str, ...]] = MappingProxyType(
    {
        "chat": ("reasoning.effort", "reasoning.max_tokens"),
        "messages": ("thinking.type", "thinking.budget_tokens"),
        "gemini": ("generationConfig.thinkingConfig.thinkingBudget",),
        "bedrock": (
            "additionalModelRequestFields.thinking.type",
            "additionalModelRequestFields.thinking.budget_tokens",
        ),
    }
)
"""The other ways to state the effort in each format, which no server takes beside the one that the plugin writes."""


def _other_effort(built: HTTPRequest, more: Mapping[str, Any]) -> str | None:
    """Return the path at which *more* states another effort than *built*, in another way, or ``None``."""
    for path in _INSTEAD_OF_EFFORT.get(format_of_path(built.path), ()):
        value = _at(more, path)
        if value is not None and value != _at(built.body, path):
            return path
    return None


def _at(body: Any, path: str) -> Any:
    """Return the value at *path* of *body* in either spelling of its keys, or ``None``."""
    for step in path.split("."):
        entries = body.items() if isinstance(body, Mapping) else ()
        body = next((value for key, value in entries if _folded(key) == _folded(step)), None)
    return body


def _bare(request: ChatRequest) -> ChatRequest:
    """Return an empty request with the effort and the options of *request*.

    The fields that its body has nevertheless are the plugin's defaults, or follow from the effort.
    """
    return ChatRequest(
        "-",
        model="-",
        provider=request.provider,
        reasoning_effort=request.reasoning_effort,
        extra_options=request.extra_options,
        provider_options=request.provider_options,
    )


def _merged(
    body: dict[str, Any],
    more: dict[str, Any],
    defaults: Callable[[], Any],
    at: tuple[str, ...],
    spellings: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Merge *more* into *body*: objects key by key, lists by appending. *defaults* are replaced.

    A key in another spelling is the same key, and a tool that is in both is one tool. *at* is the path of *more*: the
    provider's id, and the names from there.

    Raises:
        UnsupportedRequestError: *more* has another value for a field of the request.
    """
    merged = dict(body)
    for given, value in more.items():
        name = _known_as(given, merged, spellings)
        old, here = merged.get(name), (*at, given)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[name] = _merged(old, value, partial(_inside, defaults, name), here)
        elif isinstance(old, list) and isinstance(value, list):
            merged[name] = _with_tools(old, value, here) if name in _OF_TOOLS else [*old, *value]
        elif name in merged and old != value and _inside(defaults, name) != old:
            option = "provider_options" + "".join(f"[{part!r:.60}]" for part in here)
            raise UnsupportedRequestError(
                f"{option} says otherwise than the request", provider=at[0], options=[option]
            )
        else:
            merged[name] = value
    return merged


_OF_TOOLS = ("tools", "functionDeclarations")
_VERSION = re.compile(r"(_preview)?(_?\d+)*$")


def _known_as(name: str, body: dict[str, Any], spellings: Mapping[str, str]) -> str:
    """Return the key of *body* for *name* if it has that in one of its *spellings*, else *name*."""
    if name in body:
        return name
    if spellings.get(name) in body:
        return spellings[name]
    return next((known for known in body if _folded(known) == _folded(name)), name)


def _folded(name: str) -> str:
    """Return ``generationConfig`` as ``generation_config``, so that both compare equal."""
    return name.replace("_", "").lower()


def _with_tools(tools: list[Any], more: list[Any], at: tuple[str, ...]) -> list[Any]:
    """Return the *tools* of the request and *more* of them. A tool that is in both appears once."""
    result, others = [*tools], []
    for tool in more:
        for part in _parts(tool):
            location = next((n for n, own in enumerate(tools) if _identity(own) == _identity(part)), None)
            if location is None:
                others.append(part)
            else:
                result[location] = _merged(result[location], part, dict, at)
    return [*result, *others]


def _parts(tool: Any) -> list[Any]:
    """Split *tool* into single tools: one with neither name nor type may be several, each under a separate key."""
    if isinstance(tool, dict) and "name" not in tool and "type" not in tool:
        return [{key: value} for key, value in tool.items()]
    return [tool]


def _identity(tool: Any) -> object:
    """Return the identity of *tool* among others: its name, else its type in any version, else its key."""
    if not isinstance(tool, dict):
        return object()
    for holder in (tool, *tool.values()):
        if isinstance(holder, dict) and "name" in holder:
            return "name", holder["name"]
    if "type" in tool:
        return "type", _VERSION.sub("", str(tool["type"]))
    return "key", [_folded(key) for key in tool]


def _inside(defaults: Callable[[], Any], name: str) -> Any:
    result = defaults()
    return result.get(name) if isinstance(result, dict) else None


def _broken(provider: str, cause: str) -> PluginError:
    return PluginError(f"provider {provider!r}: {cause}", plugin=provider)

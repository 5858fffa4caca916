"""The options of one call: of its request, and of how it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

import attrs

from crosswalk.service.endpoint import Endpoint, Route, Secret
from crosswalk.service.exchange import Setup
from crosswalk.service.policy import RetryPolicy, Timeouts
from crosswalk.service.request import Asked, CacheMark, ChatRequest, ResponseFormat, as_request
from crosswalk.service.tools import HostedTool, NamedTool, ToolDefinition

__all__ = ["CallOptions"]


class CallOptions(TypedDict, total=False):
    """The options of one call: those of :class:`ChatRequest`, which they replace, and how it is sent.

    Attributes:
        timeout: :class:`Timeouts`, or seconds for a whole answer, and in a stream for the next byte.
        retry: a :class:`RetryPolicy`, or the number of times to repeat a failed attempt.
        headers: more headers. Their values are treated as secrets.
    """

    model: str | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    stop: str | Iterable[str]
    seed: int | None
    tools: Iterable[ToolDefinition | Mapping[str, Any]]
    hosted_tools: Iterable[HostedTool | str]
    tool_choice: str | NamedTool | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    response_format: ResponseFormat | Mapping[str, Any] | None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    cache_marks: Iterable[CacheMark | str | int]
    provider_options: Mapping[str, Mapping[str, Any]]
    timeout: Timeouts | float | None
    retry: RetryPolicy | int | None
    headers: Mapping[str, str | Secret]


def with_options(setup: Setup, asked: Asked, options: CallOptions) -> tuple[Setup, ChatRequest]:
    """Return *setup* and the request *asked*, changed by the *options* of a call.

    Raises:
        ConfigurationError: an option with a wrong value.
        ResponseValidationError: a wrong value of a request's option.
    """
    request = as_request(asked)
    if not options:
        return setup, request
    fields: dict[str, Any] = dict(options)
    timeout, retry, headers = (fields.pop(name, None) for name in ("timeout", "retry", "headers"))
    changes: dict[str, Any] = {}
    if timeout is not None:
        changes["timeouts"] = Timeouts.of(timeout)
    if retry is not None:
        changes["retry"] = RetryPolicy.of(retry)
    if headers:
        changes["routes"] = tuple(_with_headers(route, headers) for route in setup.routes)
    return (
        attrs.evolve(setup, **changes) if changes else setup,
        attrs.evolve(request, **fields) if fields else request,
    )


def _with_headers(route: Route, headers: Mapping[str, str | Secret]) -> Route:
    more = {name: value.reveal() for name, value in Endpoint("headers", headers=headers).headers.items()}
    replaced = {name.lower() for name in more}
    before = {name: value for name, value in route.headers.items() if name.lower() not in replaced}
    return attrs.evolve(route, headers={**before, **more})

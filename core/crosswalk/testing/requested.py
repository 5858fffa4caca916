"""Checks of an answer against its request: the length that was allowed, the model, and the tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from crosswalk.testing.case import Case
from crosswalk.testing.perturbation import scalars
from crosswalk.testing.problems import Problem
from crosswalk.types.values import FinishReason

LIMITS: Final = frozenset(
    {
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxOutputTokens",
        "maxTokens",
        "num_predict",
    }
    | {"max_new_tokens", "n_predict"}
)
"""The request options that limit the length of an answer."""


def answers_its_request(case: Case) -> Iterator[Problem]:
    """P4: an answer ends as ``length`` if it has as many tokens as its request allows. The request names model and tools."""
    options = list(options_of(case.capture.request))
    if not case.is_answer or not options:
        return
    yield from _limit(case, [value for name, value in options if name in LIMITS and type(value) is int])
    response, sent = case.baseline.response, {value for _, value in options if isinstance(value, str)}
    models = {value for name, value in options if name in ("model", "modelId")}
    if response["id"] in models:
        yield case.problem("P4", "id", f"{response['id']!r} is the model of the request")
    for number, call in enumerate(response["message"].get("tool_calls", ())):
        if call["id"] in sent and call["name"] not in sent:
            yield case.problem(
                "P4",
                f"tool call {number}",
                f"its id {call['id']!r} is a tool of the request, its name is not",
            )


def _limit(case: Case, limits: list[int]) -> Iterator[Problem]:
    """A word that only this provider has is read as ``stop`` at the limit, or as ``length`` below it."""
    response, stated = case.baseline.response, case.capture.says or {}
    count, raw, finish = (
        response["usage"]["completion_tokens"],
        response.get("raw_finish_reason"),
        response["finish_reason"],
    )
    if (
        not limits
        or not count
        or raw is None
        or raw.lower().partition(":")[0] in _KNOWN
        or "finish" in stated
    ):
        return
    if finish == FinishReason.STOP and count in limits:
        yield case.problem(
            "P4",
            "finish_reason",
            f"the answer has {count} tokens, the limit of its request, and {raw!r} is read as stop",
        )
    elif finish == FinishReason.LENGTH and count < min(limits):
        yield case.problem(
            "P4",
            "finish_reason",
            f"{count} tokens of {min(limits)} that the request allows, and {raw!r} is read as length",
        )


_KNOWN: Final = frozenset({*FinishReason, "max_tokens", "end_turn", "eos", "completed", "incomplete"})
"""Words with the same meaning everywhere: a server that sends the wrong one is not the plugin's mistake."""


def options_of(request: bytes | None) -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a request, by the last names of their paths. There are none if it is not JSON."""
    try:
        parsed = orjson.loads(request or b"{}")
    except orjson.JSONDecodeError:
        return
    for path, value in scalars(parsed):
        if path and isinstance(path[-1], str):
            yield path[-1], value

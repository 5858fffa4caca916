"""Checks of the requests that a plugin builds: whatever is asked is in the body, or an adaptation names it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Final

import orjson

from crosswalk.codec import from_json
from crosswalk.errors import PluginError
from crosswalk.formats.tables import option_paths
from crosswalk.plugin.hooks import fits_ids
from crosswalk.request import ChatRequest, ToolDefinition, UnsupportedRequestError
from crosswalk.service.building import build
from crosswalk.testing.captures import Capture, written
from crosswalk.testing.case import MARKER, Case, strings
from crosswalk.testing.perturbation import (
    Problem,
    at,
    scalars,
    show_path,
)
from crosswalk.testing.strict import STRICT_PROVIDERS, strict_rules
from crosswalk.testing.strict.rules import Issued, StrictRequest
from crosswalk.types.json import dump_json
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import SegmentType, altered

_ASKED_OPTIONS: Final[dict[str, Any]] = {
    "temperature": 0.625,
    "top_p": 0.375,
    "max_tokens": 70707,
    "seed": 4242424,
    "stop": ("KeLp",),
}
_ASKED_TOOL: Final = "look_at_kelp"
_ASKED_MODEL: Final = "kelp-7"
_ASKED_TURNS: Final = (("system", "Kelp is brown."), ("user", "Is it green?"), ("assistant", "No, brown."))
"""Turns before the question, with distinct texts."""


def requests_say_all(case: Case) -> Iterator[Problem]:
    """P4: what a request says is in its body, or an adaptation names it, and a stream is asked for.

    The options are where recorded requests have them. An earlier answer goes back with its text and its calls, and breaks
    no rule of the server. The first part is said once, with the first capture.
    """
    if case.mapper.build_request is None:
        return
    try:
        with suppress(UnsupportedRequestError):  # as for a state that only the server's own endpoint takes
            if case.others and case.capture.case == case.others[0].case:
                yield from _asked(case)
            if case.is_answer and case.baseline.response["finish_reason"] in ("stop", "tool_calls"):
                yield from _goes_back(case)
    except PluginError as error:
        yield case.problem("P4", "request", str(error), about="request")


def _asked(case: Case) -> Iterator[Problem]:
    tool = ToolDefinition(_ASKED_TOOL, "", {"type": "object", "properties": {"depth": {"type": "integer"}}})
    turns = [{"role": role, "content": text} for role, text in (*_ASKED_TURNS, ("user", MARKER))]
    request = ChatRequest(turns, model=_ASKED_MODEL, tools=(tool,), **_ASKED_OPTIONS)
    http_request, content = build(request, case.mapper, "drop")
    streamed_request, streamed_content = build(altered(request, stream=True), case.mapper, "drop")
    said = {*strings(http_request.body)}
    adapted = {one.field for one in http_request.adaptations}
    asked = [(f"the {role} text", text, "messages") for role, text in (*_ASKED_TURNS, ("last", MARKER))]
    asked += [("the model", _ASKED_MODEL, "model"), ("the tool", _ASKED_TOOL, "tools")]
    for name, value, field in asked:
        is_said = value in said or (value == _ASKED_MODEL and value in http_request.path)
        if not is_said and not any(one.startswith(field) for one in adapted):
            message = f"{name} {value.strip()!r} is not in the body"
            yield case.problem("P4", "request", message, about="request")
    alike = _alike(content, [text for _, text in _ASKED_TURNS])
    if alike and not any(one.startswith("messages") for one in adapted):
        message = f"it says {alike[0]!r} as it says {alike[1]!r}, which has another role"
        yield case.problem("P4", "request", message, about="request")
    if (content, http_request.path) == (streamed_content, streamed_request.path):
        yield case.problem("P4", "request", "a stream is asked for as a whole answer is", about="request")
    recorded: dict[str, list[Any]] = {}
    for path, value in (pair for one in case.others for pair in _options_at(one, http_request.path)):
        recorded.setdefault(path, []).append(value)
    for option, value in _ASKED_OPTIONS.items():
        wanted = value[0] if isinstance(value, tuple) else value
        places = {show_path(path, items=False) for path, one in scalars(http_request.body) if one == wanted}
        if not places and option not in adapted:
            message = "is neither in the body nor among the adaptations"
            yield case.problem("P4", f"request.{option}", message, about="request")
        known_places = {path for path in option_paths().get(option, ()) if path in recorded}
        for place in places & recorded.keys():
            numbers = [number for number in recorded[place] if type(number) in (int, float)]
            if any(
                number > 2 and not number % 1 if type(wanted) is float else number % 1 for number in numbers
            ):
                message = f"is at {place}, where recorded requests have other numbers"
                yield case.problem("P4", f"request.{option}", message, about="request")
        if known_places and places and places.isdisjoint(recorded):
            message = f"is at {min(places)}, and recorded requests have it at {min(known_places)}"
            yield case.problem("P4", f"request.{option}", message, about="request")


def _alike(content: bytes, texts: Collection[str]) -> list[str]:
    """Return those of *texts* that a body says alike: under the same keys, in objects without another difference."""
    body, texts_by_place = orjson.loads(content), dict[bytes, list[str]]()
    for path, value in scalars(body):
        if value in texts:
            place = dump_json([show_path(path, items=False), at(body, path[:2]), at(body, path[:-1])])
            for text in texts:
                place = place.replace(dump_json(text), b"")
            texts_by_place.setdefault(place, []).append(value)
    return next((alike for alike in texts_by_place.values() if len({*alike}) > 1), [])


def _options_at(capture: Capture, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the scalars of the recorded request of *capture*, by their paths, if it was sent to *path*."""
    with suppress(orjson.JSONDecodeError):
        if capture.request is not None and (capture.path or "").endswith(path):
            for where, value in scalars(orjson.loads(capture.request)):
                yield show_path(where, items=False), value


def _goes_back(case: Case) -> Iterator[Problem]:
    """The next request holds the texts and the calls of this answer, and breaks no rule of the server."""
    answer_sent = from_json(written(case.baseline.response), ChatResponse)
    calls = answer_sent.message.tool_calls or ()
    results = [ChatMessage.tool_result(call.id, MARKER, name=call.name) for call in calls]
    turns: list[Any] = [ChatMessage.user("Hi"), answer_sent, *(results or [ChatMessage.user(MARKER)])]
    http_request, content = build(ChatRequest(turns, model=_ASKED_MODEL), case.mapper, "drop")
    said = "\n".join(strings(http_request.body))
    texts = [part.content for part in answer_sent.segments if part.type is SegmentType.TEXT]
    texts = texts or [answer_sent.text or ""]
    marks = case.baseline.provenance
    id_rule = case.mapper.info.call_ids  # other ids are sent under other names
    ids = [
        call.id
        for number, call in enumerate(calls)
        if f"message.tool_calls[{number}].id" not in marks and (id_rule is None or fits_ids(id_rule, call.id))
    ]
    wanted = {
        "text": texts,
        "calls": [call.name for call in calls],
        "ids, of calls and of their results": ids,
    }
    for kind, texts in wanted.items():
        if not all(said.count(text) > (texts is ids) for text in texts):
            message = f"the next request has not all of its {kind}"
            yield case.problem("P4", "request", message, about="request")
    if answer_sent.reasoning and _alike(content, [answer_sent.reasoning, answer_sent.text or ""]):
        message = "the next request says its reasoning as it says its text"
        yield case.problem("P4", "request", message, about="request")
    if case.mapper.provider in STRICT_PROVIDERS and case.capture.server in (None, case.mapper.provider):
        rules, issued = strict_rules(case.mapper.provider), Issued(case.mapper.info.framing)
        issued.add(case.capture)
        strict_request = StrictRequest(http_request.path, orjson.loads(content), issued)
        is_ruled = http_request.path.partition("?")[0].endswith(rules.endpoint)
        for rule, refusal in rules.violations(strict_request) if is_ruled else ():
            message = f"the server refuses it: {rule.name}: {refusal.message}"
            yield case.problem("P4", "request", message, about="request")

"""Nothing of a client's request is lost in silence: one leaf changed, and what is read changes, and what is sent or reported."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import attrs
import orjson
import pytest

from client_requests import REQUESTS
from crosswalk import ChatResponse, to_json
from crosswalk.convert import WireForm
from crosswalk.service import HTTPRequest, UnsupportedRequestError, build_http_request
from crosswalk.wire.options import Place, path_of
from crosswalk_serve.http import BadRequestError
from crosswalk_serve.requests import Incoming, read_request

TARGETS = ("openai", "vllm", "openai_responses", "anthropic", "ollama", "gemini")
GONE = object()


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every place in *value* with a simple value, and that value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*place, number))
    else:
        yield place, value


def others(value: Any) -> Iterator[Any]:
    """The values that may replace *value*."""
    yield GONE
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        if value:
            yield value / 2
    elif isinstance(value, str):
        yield value + "x"
        yield 7
    else:
        yield "x"


def with_other(body: dict[str, Any], place: Place, other: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    *steps, last = place
    inner: Any = changed
    for step in steps:
        inner = inner[step]
    if other is GONE:
        del inner[last]
    else:
        inner[last] = other
    return changed


def read(form: WireForm, body: dict[str, Any]) -> Incoming | None:
    """The result of reading *body*. ``None`` if it is refused, with its place."""
    try:
        return read_request(form, orjson.dumps(body))
    except BadRequestError as error:
        assert error.status == 400
        assert error.path
        return None


def meaning(incoming: Incoming | None) -> Any:
    if incoming is None:
        return None
    asked = incoming.request.asked
    turns = [to_json(turn) if isinstance(turn, ChatResponse) else turn for turn in asked.messages]
    options = {name: getattr(asked, name) for name in attrs.fields_dict(type(asked)) if name != "messages"}
    return options, turns, incoming.unread, incoming.wants


SAME_ANYHOW = re.compile(
    r"stream"  # an answer is not streamed unless that is asked for; Ollama's is
    r"|input\[\d+\]\.type|.*tool_calls\[0\]\.type|.*tools\[\d+\]\.type"  # the other fields say what it is
    r"|.*\.refusal|.*\.annotations|.*\.is_error"  # it is null, empty or false
    r"|.*\.arguments|.*\.input|messages\[\d\]\.content"  # of a call without arguments, of an answer without a text
    r"|.*\.tool_name"  # the call before says it
    r"|tools\[1\]\.name"  # the type of a server's tool says it
    r"|.*\.user_location\.type"  # there is one type alone
)
"""Leaves that may be left out, for what they say holds without them."""


@pytest.mark.parametrize("name", REQUESTS)
def test_a_changed_leaf_changes_what_is_read(name: str) -> None:
    form, body = REQUESTS[name]
    before = meaning(read(form, body))
    assert before is not None
    problems = []
    for place, value in leaves(body):
        for other in others(value):
            if other is GONE and SAME_ANYHOW.fullmatch(path_of(place)):
                continue
            if meaning(read(form, with_other(body, place, other))) == before:
                problems.append(f"{path_of(place)}: {'gone' if other is GONE else repr(other)}")
    assert not problems, "\n".join(problems)


# What is sent.


def built(incoming: Incoming, provider: str) -> HTTPRequest | str:
    try:
        return build_http_request(incoming.request, provider, on_unsupported="drop")
    except UnsupportedRequestError as error:
        return str(error)


def is_named(request: HTTPRequest, place: Place) -> bool:
    """Whether the report names *place*, its canonical path, or the option that it is read as."""
    path = path_of(place)
    options = [dropped.field for dropped in request.dropped]
    if any(re.fullmatch(rf"messages\[\d+\]\.content\[\d+\]\.{place[-1]}", option) for option in options):
        return True
    return any(path == option or path.startswith((f"{option}.", f"{option}[")) for option in options) or any(
        option.partition(".")[0] in READ_AS.get(str(place[0]), (place[0], place[-1])) for option in options
    )


READ_AS: dict[str, tuple[str, ...]] = {
    "tools": ("hosted_tools",),
    "tool_choice": ("tool_choice", "parallel_tool_calls"),
    "stop_sequences": ("stop",),
    "reasoning": ("reasoning_effort",),
    "options": ("top_k", "seed", "stop"),
}
NOT_SENT = re.compile(
    r"echo"  # the gateway itself writes the prompt before the answer
    r"|stream_options\.include_usage"  # the gateway asks for the counts in any case
    r"|.*cache_control.*"  # a server that wants no marks caches by itself
    r"|.*\.media_type"  # it is known by what the data begin with
    r"|input\[\d+\]\.(id|status)|.*\.annotations"  # what one server has noted is no other's affair
    r"|messages\[\d+\]\.name|.*\.(filename|title|strict)"  # some APIs have no such thing
    r"|(response_format\.json_schema|text\.format)\.name"  # likewise
    r"|store|stream_options\.include_obfuscation"  # nothing is stored or padded where there is no such option
    r"|reasoning\.summary"  # an effort asks for it as well
)
"""What need not reach a server."""
STATE_REFUSED = re.compile(r"it cannot express (\w+)(?:\[(\d+)\])? \(it names what a server of")
"""What another server has no place for, and is never left out in silence."""


@pytest.mark.sweep
@pytest.mark.parametrize("provider", TARGETS)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_changed_leaf_changes_what_is_sent_or_what_is_reported(name: str, provider: str) -> None:
    form, body = REQUESTS[name]
    whole = read(form, body)
    assert whole is not None
    before = built(whole, provider)
    while isinstance(before, str) and (state := STATE_REFUSED.search(before)):
        body = with_other(body, (state[1], int(state[2])) if state[2] else (state[1],), GONE)
        whole = read(form, body)
        assert whole is not None
        before = built(whole, provider)
    if isinstance(before, str):
        assert "must be given as data" in before or "cannot be sent to this API" in before
        return
    problems = []
    for place, value in leaves(body):
        path = path_of(place)
        if is_named(before, place) or NOT_SENT.fullmatch(path):
            continue
        for other in others(value):
            if other is GONE and SAME_ANYHOW.fullmatch(path):
                continue
            incoming = read(form, with_other(body, place, other))
            after = "refused" if incoming is None else built(incoming, provider)
            if isinstance(after, str) or is_named(after, place):
                continue
            if (before.path, before.body, before.dropped) == (after.path, after.body, after.dropped):
                problems.append(f"{path_of(place)}: {'gone' if other is GONE else repr(other)}")
    assert not problems, "\n".join(problems)

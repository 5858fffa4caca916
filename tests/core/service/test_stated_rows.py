"""What a server's rows state of options whose values are words or objects reaches its place, or is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.plugins import Drops, RequestRow, RequestTable, put_options
from crosswalk.service import (
    ChatRequest,
    HTTPRequest,
    NamedTool,
    OpenAIChatStyle,
    ResponseFormat,
    ToolDefinition,
    build_openai_chat_request,
)

LEVELS = {"none": 0, "low": 1, "high": 3}
CHOICES = {"auto": "may", "required": "must"}
TOOL = ToolDefinition("look", "Looks.", {"type": "object"})
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def asked(**options: Any) -> ChatRequest:
    return ChatRequest("Hi", model="m", **options)


def built(*rows: RequestRow, lacks: tuple[str, ...] = (), **options: Any) -> HTTPRequest:
    return build_openai_chat_request(asked(**options), OpenAIChatStyle(rows=rows, lacks=lacks))


def named(request: HTTPRequest) -> list[tuple[str, str]]:
    return [(one.field, str(one.kind)) for one in request.adaptations]


def test_an_effort_is_written_in_the_servers_words_and_place() -> None:
    row = RequestRow("musing_level", "reasoning_effort", words=LEVELS)
    request = built(row, reasoning_effort="high")
    assert (request.body["musing_level"], request.adaptations) == (3, ())
    assert "reasoning_effort" not in request.body
    request = built(row, reasoning_effort="none")
    assert request.body["musing_level"] == 0


def test_an_effort_without_a_word_gets_the_nearest_one_and_a_note() -> None:
    request = built(RequestRow("musing_level", "reasoning_effort", words=LEVELS), reasoning_effort="max")
    assert (request.body["musing_level"], named(request)) == (3, [("reasoning_effort", "clamped")])


def test_a_choice_of_tools_is_written_in_the_servers_words() -> None:
    row = RequestRow("use", "tool_choice", words=CHOICES)
    request = built(row, tools=[TOOL], tool_choice="required")
    assert (request.body["use"], request.adaptations) == ("must", ())
    request = built(row, tools=[TOOL], tool_choice="none")
    assert (named(request), request.body.keys() & {"use", "tool_choice"}) == (
        [("tool_choice", "dropped")],
        set(),
    )


def test_a_named_tool_has_the_form_that_the_row_writes_or_openais() -> None:
    choice = NamedTool("look")
    row = RequestRow("use", "tool_choice", write=lambda wanted: {"tool": wanted.name})
    assert built(row, tools=[TOOL], tool_choice=choice).body["use"] == {"tool": "look"}
    request = built(RequestRow("use", "tool_choice", words=CHOICES), tools=[TOOL], tool_choice=choice)
    assert request.body["use"] == {"type": "function", "function": {"name": "look"}}
    assert "tool_choice" not in request.body


def test_a_format_has_the_place_and_form_of_its_row() -> None:
    request = built(RequestRow("shape", "response_format"), response_format=ResponseFormat(SCHEMA))
    assert request.body["shape"]["json_schema"]["schema"] == SCHEMA
    assert "response_format" not in request.body

    def write(wanted: ResponseFormat) -> Any:
        return None if wanted.schema is None else dict(wanted.schema)

    row = RequestRow("shape", "response_format", write=write)
    assert built(row, response_format=ResponseFormat(SCHEMA)).body["shape"].keys() == SCHEMA.keys()
    request = built(row, response_format=ResponseFormat())
    assert ("shape" in request.body, named(request)) == (False, [("response_format", "dropped")])


@pytest.mark.parametrize(
    ("name", "value"),
    [("reasoning_effort", "low"), ("tool_choice", "auto"), ("response_format", ResponseFormat(SCHEMA))],
)
def test_an_option_that_the_server_lacks_is_named(name: str, value: Any) -> None:
    request = built(lacks=(name,), **{name: value})
    assert (named(request), name in request.body) == ([(name, "dropped")], False)


@pytest.mark.parametrize("place", ["format.schema", "tool.parameters", "message.name", "call", "reasoning"])
def test_a_row_that_nothing_would_write_is_refused_where_it_stands(place: str) -> None:
    with pytest.raises(ValueError, match=rf"{place} has OpenAI's field, and none at own\.place"):
        OpenAIChatStyle(rows=(RequestRow("own.place", place),))


def test_a_table_of_ones_own_writes_its_words() -> None:
    table = RequestTable(
        "own",
        "Own",
        ("/ask",),
        (
            RequestRow("knobs.effort", "reasoning_effort", words=LEVELS),
            RequestRow("fn", "tool_choice", words=CHOICES),
        ),
    )
    request = asked(tools=[TOOL], tool_choice="auto", reasoning_effort="low")
    body: dict[str, Any] = {}
    drops = Drops(request)
    put_options(body, request, table, drops)
    assert (body, drops.found()) == ({"knobs": {"effort": 1}, "fn": "may"}, ())
    body = {}
    put_options(body, request, table, drops, but=["tool_choice"], names={"reasoning_effort": "effort"})
    assert (body, drops.found()) == ({"effort": 1}, ())


def test_a_table_without_words_writes_openais_and_names_a_certain_tool() -> None:
    rows = (RequestRow("effort", "reasoning_effort"), RequestRow("use", "tool_choice"))
    table = RequestTable("own", "Own", ("/ask",), rows)
    request = asked(tools=[TOOL], tool_choice=NamedTool("look"), reasoning_effort="low")
    body: dict[str, Any] = {}
    drops = Drops(request)
    put_options(body, request, table, drops)
    assert body == {"effort": "low"}
    assert [(one.field, one.reason) for one in drops.found()] == [("tool_choice", "Own has no word for it")]

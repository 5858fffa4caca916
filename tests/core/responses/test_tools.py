"""The calls of all tools behind one interface, and the steps of their statuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import attrs
import orjson
import pytest
from hypothesis import given, strategies as st

from crosswalk import CrosswalkError, ToolCall, ToolCallArgumentsError, responses as r
from crosswalk.responses import (
    Chunk,
    DocumentFinderTool,
    FileReaderTool,
    ResponseAccumulator,
    ResponseToolCall,
    StatusProgressionError,
    ToolCallError,
    ToolCallRegistry,
    parse_event,
    parse_input_item,
    parse_item,
    parse_params,
    to_dict,
    tool_calls_of,
    tool_registry,
)
from crosswalk.responses.processors import ProgressWatch
from crosswalk.responses.records import _REGISTERED_CLASSES

# ------------------------------------------------------------------------------------ to chat and back

CHAT: dict[str, tuple[type[ResponseToolCall[Any]], str, dict[str, Any], dict[str, Any]]] = {
    "file search": (
        r.FileSearchToolCall,
        "file_search",
        {"queries": ["a", "b"]},
        {"type": "file_search_call", "id": "call_1", "queries": ["a", "b"]},
    ),
    "web search": (
        r.WebSearchToolCall,
        "web_search",
        {"query": "a"},
        {"type": "web_search_call", "id": "call_1", "action": {"type": "search", "query": "a"}},
    ),
    "web page": (
        r.WebSearchToolCall,
        "web_search",
        {"type": "open_page", "url": "u"},
        {"type": "web_search_call", "id": "call_1", "action": {"type": "open_page", "url": "u"}},
    ),
    "web pattern": (
        r.WebSearchToolCall,
        "web_search",
        {"type": "find_in_page", "url": "u", "pattern": "p"},
        {
            "type": "web_search_call",
            "id": "call_1",
            "action": {"type": "find_in_page", "url": "u", "pattern": "p"},
        },
    ),
    "document finder": (
        r.DocumentFinderToolCall,
        "document_finder",
        {"queries": ["a"], "collections": ["c"]},
        {"type": "document_finder_call", "id": "call_1", "queries": ["a"], "collections": ["c"]},
    ),
    "file reader": (
        r.FileReaderToolCall,
        "file_reader",
        {"file_id": "f", "first_page": 2, "last_page": 3},
        {"type": "file_reader_call", "id": "call_1", "file_id": "f", "first_page": 2, "last_page": 3},
    ),
    "computer": (
        r.ComputerToolCall,
        "computer",
        {"action": {"type": "wait"}, "pending_safety_checks": [{"id": "s"}]},
        {
            "type": "computer_call",
            "call_id": "call_1",
            "action": {"type": "wait"},
            "pending_safety_checks": [{"id": "s"}],
        },
    ),
    "computer, several": (
        r.ComputerToolCall,
        "computer",
        {"actions": [{"type": "wait"}]},
        {
            "type": "computer_call",
            "call_id": "call_1",
            "actions": [{"type": "wait"}],
            "pending_safety_checks": [],
        },
    ),
    "function": (
        r.FunctionToolCall,
        "stock",
        {"sku": 9},
        {"type": "function_call", "call_id": "call_1", "name": "stock", "arguments": '{"sku":9}'},
    ),
}


@pytest.mark.parametrize(("tool", "name", "arguments", "item"), CHAT.values(), ids=CHAT)
def test_a_chats_tool_call_becomes_an_item_and_comes_back(
    tool: type[ResponseToolCall[Any]], name: str, arguments: dict[str, Any], item: dict[str, Any]
) -> None:
    asked = ToolCall("call_1", name, orjson.dumps(arguments).decode())
    call = tool_registry.from_chat_tool_call(asked)
    assert type(call) is tool
    assert to_dict(call.item) == {**item, "status": "in_progress"}
    assert (call.id, call.status, call.chunkify()) == ("call_1", "in_progress", ())
    assert call.with_chunks(()) == call
    assert call.to_chat_tool_call() == asked
    assert tool.from_chat_tool_call(call.to_chat_tool_call()) == call
    assert tool_registry.from_item(parse_item(to_dict(call.item))) == call
    assert not call.progression.allows("completed", "in_progress")


def test_a_search_on_the_web_may_name_its_type() -> None:
    call = r.WebSearchToolCall.from_chat_tool_call(
        ToolCall("c", "web_search", '{"type":"search","query":"a"}')
    )
    assert call.item.action == r.ActionSearch(query="a")


def test_the_arguments_of_a_function_are_the_models_own_text() -> None:
    asked = ToolCall("c", "stock", '{"sku": 9,')
    assert r.FunctionToolCall.from_chat_tool_call(asked).to_chat_tool_call() == asked


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("file_search", "[]", "not a JSON object"),
        ("file_search", "{", "not JSON"),
        ("file_search", "{}", r"a required key is missing @ \$.queries"),
        ("file_search", '{"queries":"a"}', r"expected array, got string @ \$.queries"),
        ("file_search", '{"queries":[],"max":3}', "takes no 'max'"),
        ("document_finder", '{"queries":[1]}', r"got number @ \$.queries\[0\]"),
        ("file_reader", '{"file_id":null}', "expected string, got null"),
        ("web_search", '{"type":"dream"}', "unknown web search action type 'dream'"),
        ("web_search", '{"query":"a","sources":[]}', "sources are what was found"),
        ("web_search", '{"query":"a","sources":[{"type":"url","url":"u"}]}', "sources are what was found"),
        ("computer", "{}", "nothing is to be done"),
        ("computer", '{"actions":[{"type":"wait","now":1}]}', "takes no 'now'"),
    ],
)  # fmt: skip
def test_arguments_that_a_tool_does_not_take_are_refused(name: str, arguments: str, problem: str) -> None:
    with pytest.raises(ToolCallArgumentsError, match=problem) as caught:
        tool_registry.from_chat_tool_call(ToolCall("call_1", name, arguments))
    assert (caught.value.name, caught.value.call_id) == (name, "call_1")


@given(st.sampled_from(["file_search", "web_search", "document_finder", "file_reader", "computer"]), st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["queries", "type", "query", "url", "file_id", "action", "actions", "é\x1b"]), inner, max_size=3), max_leaves=6))  # fmt: skip
def test_any_arguments_give_a_call_or_a_typed_error(name: str, arguments: object) -> None:
    asked = ToolCall("c", name, orjson.dumps(arguments).decode())
    try:
        call = tool_registry.from_chat_tool_call(asked)
    except CrosswalkError as error:
        assert "\x1b" not in str(error)
    else:
        assert type(call).from_chat_tool_call(call.to_chat_tool_call()) == call


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"type": "file_search_call", "queries": ["a"]}, "file_search_call: a chat's tool call needs an id"),
        ({"type": "web_search_call", "id": "w"}, "web_search_call 'w': has no action yet"),
        ({"type": "computer_call", "call_id": "c"}, "computer_call 'c': has no action yet"),
        ({"type": "function_call", "call_id": "", "name": "f"}, "needs an id and a name"),
        ({"type": "function_call", "call_id": "c", "name": ""}, "function_call 'c': a chat's tool call needs an id and a name"),
    ],
)  # fmt: skip
def test_what_a_chat_cannot_say_is_refused(item: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolCallError, match=problem):
        tool_registry.from_item(parse_item(item)).to_chat_tool_call()


def test_a_call_of_another_tool_is_refused() -> None:
    with pytest.raises(ToolCallError, match=r"file_search_call 'c': is not a call of 'file_search'"):
        r.FileSearchToolCall.from_chat_tool_call(ToolCall("c", "stock", "{}"))
    with pytest.raises(
        ToolCallError, match="expected ResponseFileSearchToolCall, got ResponseFunctionWebSearch"
    ):
        r.FileSearchToolCall(r.ResponseFunctionWebSearch())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ what was found

FILE = {"file_id": "f", "filename": "a.pdf", "text": "one", "score": 0.5}


def chunks_of(item: dict[str, Any], output: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    answer = None if output is None else parse_input_item(output)
    call = tool_registry.from_item(parse_item(item), answer)
    assert call.with_chunks(call.chunkify()) == call
    return [
        (
            chunk.index,
            chunk.content,
            chunk.title,
            None if chunk.annotation is None else chunk.annotation.source,
        )
        for chunk in call.chunkify()
    ]


@pytest.mark.parametrize(
    ("item", "chunks"),
    [
        pytest.param(
            {"type": "file_search_call", "queries": [], "results": [FILE, {"text": "two"}, {**FILE, "attributes": {"page_number": 2.0, "document_position": 7}}, {**FILE, "text": None, "page_number": 3, "attributes": {"page_number": True}}]},
            [(0, "one", "a.pdf", ("f", None, None)), (1, "two", None, None), (2, "one", "a.pdf", ("f", 2, 7)), (3, "", "a.pdf", ("f", 3, None))],
            id="file search",
        ),
        pytest.param(
            {"type": "web_search_call", "action": {"type": "search", "sources": [{"type": "url", "url": "u"}, {"type": "api", "name": "oai-weather"}, {"type": "result", "url": "v", "title": "V", "text": "vvv"}, {"type": "result", "url": ""}]}},
            [(0, "", None, "u"), (2, "vvv", "V", "v"), (3, "", None, None)],
            id="web search",
        ),
        pytest.param({"type": "web_search_call", "action": {"type": "open_page", "url": "u"}}, [(0, "", None, "u")], id="page"),
        pytest.param({"type": "web_search_call", "action": {"type": "open_page"}}, [], id="page without URL"),
        pytest.param({"type": "web_search_call", "action": {"type": "search", "query": "q"}}, [], id="no sources"),
        pytest.param(
            {"type": "document_finder_call", "results": [{"url": "u", "title": "T"}, {**FILE, "url": "u"}]},
            [(0, "", "T", "u"), (1, "one", "a.pdf", ("f", None, None))],
            id="document finder",
        ),
        pytest.param(
            {"type": "file_reader_call", "file_id": "f", "filename": "a.pdf", "results": [{"text": "p1", "page_number": 1}, {"text": "?", "document_position": 40}]},
            [(0, "p1", "a.pdf", ("f", 1, None)), (1, "?", "a.pdf", ("f", None, 40))],
            id="file reader",
        ),
    ],
)  # fmt: skip
def test_results_become_chunks(item: dict[str, Any], chunks: list[tuple[Any, ...]]) -> None:
    assert chunks_of(item) == chunks


FUNCTION = {"type": "function_call", "call_id": "c", "name": "stock"}
COMPUTER = {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}}


@pytest.mark.parametrize(
    ("item", "output", "chunks"),
    [
        (FUNCTION, "21", [(0, "21", "stock", None)]),
        (FUNCTION, "", [(0, "", "stock", None)]),
        (FUNCTION, [], []),
        (FUNCTION, [{"type": "input_image", "image_url": "i"}, {"type": "input_text", "text": "t"}, {"type": "input_file", "file_id": "f", "filename": "a.pdf"}, {"type": "input_file", "file_url": "u"}, {"type": "input_file", "file_data": "d"}], [(1, "t", "stock", None), (2, "", "a.pdf", ("f", None, None)), (3, "", "stock", "u"), (4, "", "stock", None)]),
        (COMPUTER, {"type": "computer_screenshot", "file_id": "f"}, [(0, "f", "screenshot", None)]),
        (COMPUTER, {"type": "computer_screenshot", "image_url": "https://i"}, [(0, "https://i", "screenshot", None)]),
        (COMPUTER, {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"}, []),
        (COMPUTER, {"type": "computer_screenshot"}, []),
    ],
)  # fmt: skip
def test_outputs_become_chunks(item: dict[str, Any], output: Any, chunks: list[tuple[Any, ...]]) -> None:
    assert chunks_of(item) == []
    assert chunks_of(item, {"type": f"{item['type']}_output", "call_id": "c", "output": output}) == chunks


def test_a_call_can_be_left_with_some_of_its_chunks() -> None:
    def left(item: dict[str, Any], output: Any = None) -> dict[str, Any]:
        answer = None
        if output is not None:
            answer = parse_input_item({"type": "function_call_output", "call_id": "c", "output": output})
        call = tool_registry.from_item(parse_item(item), answer)
        kept = [
            attrs.evolve(chunk, content=chunk.content.upper())
            for chunk in call.chunkify()
            if chunk.index != 1
        ]
        call = call.with_chunks(kept)
        return to_dict(call.output or call.item)

    assert left({"type": "file_search_call", "results": [FILE, FILE]})["results"] == [{**FILE, "text": "ONE"}]
    assert left({"type": "document_finder_call", "results": [FILE, FILE]})["results"] == [
        {**FILE, "text": "ONE"}
    ]
    assert left({"type": "file_reader_call", "file_id": "f", "results": [{"text": "a"}, {"text": "b"}]})[
        "results"
    ] == [{"text": "A"}]
    sources = [
        {"type": "result", "url": "u", "text": "a"},
        {"type": "url", "url": "v"},
        {"type": "api", "name": "n"},
        {"type": "url", "url": "w"},
    ]
    action = {"type": "search", "sources": sources}
    kept = left({"type": "web_search_call", "action": action})["action"]["sources"]
    assert kept == [{"type": "result", "url": "u", "text": "A"}, *sources[2:]]
    assert left(FUNCTION, "a")["output"] == "A"
    parts = [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b"},
        {"type": "input_image", "image_url": "i"},
        {"type": "input_file", "file_id": "f"},
    ]
    assert left(FUNCTION, parts)["output"] == [{"type": "input_text", "text": "A"}, *parts[2:]]


def test_chunks_of_another_call_are_refused() -> None:
    call = tool_registry.from_item(parse_item({"type": "file_search_call", "results": [FILE]}))
    with pytest.raises(ToolCallError, match="did not find"):
        call.with_chunks([Chunk(content="", index=1)])


# ------------------------------------------------------------------------------------ calls and their answers


def test_calls_are_found_with_their_answers() -> None:
    def output(call_id: str, text: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": text}

    items = [
        parse_input_item(item)
        for item in (
            {"role": "user", "content": "hi"},
            {**FUNCTION, "call_id": "a"},
            {**FUNCTION, "call_id": "b"},
            output("b", "1"),
            output("a", "2"),
            {"type": "file_search_call", "queries": []},
            {"type": "mcp_call", "id": "m", "server_label": "s", "name": "n"},
            {**FUNCTION, "call_id": "a"},
            {**FUNCTION, "call_id": "b"},
            output("a", "3"),
        )
    ]
    calls = tool_calls_of(items)
    assert [getattr(call.output, "output", None) for call in calls] == ["2", "1", None, "3", None]
    with pytest.raises(ToolCallError, match="function_call_output 'z': answers no call"):
        tool_calls_of([*items, parse_input_item(output("z", "1"))])


def test_an_answer_must_fit_its_call() -> None:
    call = tool_registry.from_item(parse_item(FUNCTION))
    answer = r.ResponseFunctionToolCallOutputItem(call_id="c", output="1")
    assert call.answered(answer).output == answer
    assert call.answered(r.ResponseFunctionToolCallOutputItem(output="1")).chunkify()[0].content == "1"
    with pytest.raises(ToolCallError, match="function_call 'c': the output is another call's"):
        call.answered(answer.replace(call_id="d"))
    with pytest.raises(ToolCallError, match="is not answered by a ResponseFunctionToolCall"):
        call.answered(call.item)
    with pytest.raises(ToolCallError, match="file_search_call: is not answered"):
        tool_registry.from_item(parse_item({"type": "file_search_call"}), answer)


# ------------------------------------------------------------------------------------ statuses

STEPS = {
    ("file_search_call", "web_search_call", "document_finder_call"): {
        ("in_progress", "searching"), ("searching", "completed"),
        *itertools.product(("in_progress", "searching"), ("incomplete", "failed")),
    },
    ("function_call", "computer_call", "file_reader_call"): {("in_progress", "completed"), ("in_progress", "incomplete")},
}  # fmt: skip
"""All the steps that a status can take."""


def steps() -> Iterator[tuple[str, str, str, bool]]:
    words = ("in_progress", "searching", "completed", "incomplete", "failed", "dreaming")
    for tools, allowed in STEPS.items():
        known = {word for step in allowed for word in step}
        for tool, before, after in itertools.product(tools, words, words):
            if before in known:
                yield tool, before, after, (before, after) in allowed or before == after


@pytest.mark.sweep
@pytest.mark.parametrize(("tool", "before", "after", "possible"), list(steps()))
def test_a_status_takes_only_its_steps(tool: str, before: str, after: str, possible: bool) -> None:
    needed = {"call_id": "c", "name": "f", "file_id": "f"}
    cls = tool_registry.get(tool)
    assert cls is not None
    fields = {name: needed[name] for name in needed if hasattr(cls.item_type, name)}
    call = tool_registry.from_item(parse_item({"type": tool, "status": before, **fields}))
    if possible:
        assert call.advance(after).status == after
        assert call.status == before
    else:
        with pytest.raises(StatusProgressionError, match=f"{tool}.*: '{after}' (cannot follow '{before}'|is not a status of this tool)") as caught:  # fmt: skip
            call.advance(after)
        assert (caught.value.tool, caught.value.after) == (tool, after)


def test_a_call_without_a_status_may_be_anywhere() -> None:
    call = tool_registry.from_item(parse_item({"type": "file_search_call"}))
    assert call.status is None
    assert call.advance("completed").status == "completed"
    with pytest.raises(StatusProgressionError, match="'ready' is not a status"):
        call.advance("ready")


# ------------------------------------------------------------------------------------ tools of one's own


@pytest.fixture
def registry() -> Iterator[ToolCallRegistry]:
    before = dict(_REGISTERED_CLASSES)
    yield ToolCallRegistry()
    _REGISTERED_CLASSES.clear()
    _REGISTERED_CLASSES.update(before)


@r.record
class OracleItem(r.Item):
    type: Literal["oracle_call"] = "oracle_call"
    question: str
    answer: str | None = None
    status: r.ItemStatus | None = None


class Oracle(ResponseToolCall[OracleItem]):
    item_type = OracleItem
    chat_name = "oracle"
    progression = r.StatusProgression(("in_progress",))

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        return cls(OracleItem(id=tool_call.id, question=tool_call.parsed()["question"]))

    def to_chat_tool_call(self) -> ToolCall:
        return ToolCall(
            self.item.id or "?", "oracle", orjson.dumps({"question": self.item.question}).decode()
        )

    def chunkify(self) -> Sequence[Chunk]:  # type: ignore[override]
        return () if self.item.answer is None else (Chunk(content=self.item.answer),)


def test_a_tool_of_ones_own_is_registered_without_touching_the_core(registry: ToolCallRegistry) -> None:
    assert registry.register(Oracle) is Oracle
    item = parse_item(
        {"type": "oracle_call", "id": "o", "question": "?", "answer": "42", "status": "in_progress"}
    )
    [call] = registry.tool_calls_of([item])
    assert isinstance(call, Oracle)
    assert [chunk.content for chunk in call.chunkify()] == ["42"]
    assert call.with_chunks(()) is call
    assert call.advance("completed").status == "completed"
    assert registry.from_chat_tool_call(ToolCall("o", "oracle", '{"question":"?"}')).id == "o"
    assert "oracle_call" in repr(call) or "OracleItem" in repr(call)


def test_a_later_registration_takes_the_place_of_the_earlier(registry: ToolCallRegistry) -> None:
    class Renamed(Oracle):
        chat_name = "delphi"

    registry.register(Oracle)
    registry.register(Renamed)
    assert registry.get("oracle_call") is Renamed
    assert isinstance(registry.from_chat_tool_call(ToolCall("o", "delphi", '{"question":"?"}')), Renamed)
    with pytest.raises(ToolCallError, match="'o': no tool has such a name in chat"):
        registry.from_chat_tool_call(ToolCall("o", "oracle", "{}"))


def test_the_tools_that_there_are_and_a_programs_own() -> None:
    """Each tool of the package is registered, and the decorator adds to them."""
    tools = (
        r.ComputerToolCall,
        r.DocumentFinderToolCall,
        r.FileReaderToolCall,
        r.FileSearchToolCall,
        r.FunctionToolCall,
        r.WebSearchToolCall,
    )
    for cls in tools:
        assert tool_registry.get(cls.tool()) is cls

    class Finder(r.FileSearchToolCall):
        """A file search of one's own."""

    try:
        assert r.register_tool_call(Finder) is Finder
        assert tool_registry.get("file_search_call") is Finder
    finally:
        r.register_tool_call(r.FileSearchToolCall)
    assert tool_registry.get("file_search_call") is r.FileSearchToolCall


def test_two_tools_cannot_have_one_name(registry: ToolCallRegistry) -> None:
    class Searching(Oracle):
        item_type = r.ResponseFileSearchToolCall  # type: ignore[assignment]

    class Nameless(Oracle):
        chat_name = None  # type: ignore[assignment]

    registry.register(Oracle)
    with pytest.raises(ToolCallError, match="the chat name 'oracle' is that of oracle_call"):
        registry.register(Searching)
    registry.register(r.FunctionToolCall)
    with pytest.raises(ToolCallError, match="is that of function_call"):
        registry.register(Nameless)
    registry.register(r.FunctionToolCall)


def test_items_of_no_tool_are_refused(registry: ToolCallRegistry) -> None:
    with pytest.raises(ToolCallError, match="no tool has items of type 'file_search_call'"):
        registry.from_item(parse_item({"type": "file_search_call"}))
    with pytest.raises(TypeError, match="no literal type"):
        registry.register(type("Loose", (Oracle,), {"item_type": r.Item}))
    assert registry.get(None) is None


@pytest.mark.parametrize("status", [None, 5, b"completed"])
def test_what_is_no_string_is_no_status(status: Any) -> None:
    call = r.FunctionToolCall(r.ResponseFunctionToolCall(call_id="c", name="f", status=None))
    with pytest.raises(r.ToolCallError, match="function_call 'c': expected a status, got"):
        call.advance(status)


# ------------------------------------------------------------------------------------ tools of seed 001


@pytest.mark.parametrize(
    ("data", "cls"),
    [
        (
            {
                "type": "document_finder",
                "collections": ["c"],
                "filters": {"type": "eq", "key": "k", "value": 1},
                "max_num_results": 3,
            },
            DocumentFinderTool,
        ),
        ({"type": "document_finder"}, DocumentFinderTool),
        ({"type": "file_reader", "file_ids": ["f"]}, FileReaderTool),
        ({"type": "file_reader"}, FileReaderTool),
    ],
)
def test_a_request_may_define_a_document_finder_and_a_file_reader(data: dict[str, Any], cls: type) -> None:
    params = parse_params({"model": "m", "input": "x", "tools": [data]})
    assert type(params.tools[0]) is cls  # type: ignore[index]
    assert to_dict(params)["tools"] == [data]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"type": "document_finder_call", "queries": ["q"]}, ["in_progress", "searching", "completed"]),
        ({"type": "file_reader_call", "file_id": "f"}, ["in_progress", "completed"]),
    ],
)
def test_a_stream_tells_how_far_they_have_come(call: dict[str, Any], words: list[str]) -> None:
    at = {"item_id": "i_1", "output_index": 0}
    item = {"id": "i_1", **call}
    events = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": f"response.{call['type']}.{word}", **at} for word in words),
    ]
    accumulator = ResponseAccumulator()
    told = [accumulator.add(parse_event(event)).response.output for event in events]
    assert [output[0].status for output in told[2:]] == words  # type: ignore[union-attr]
    watch = ProgressWatch(tool_registry)
    for event in events:
        watch.check(parse_event(event))
    with pytest.raises(StatusProgressionError):
        watch.check(parse_event(events[2]))

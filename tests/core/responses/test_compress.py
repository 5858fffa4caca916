"""The chunks that each way of compressing leaves, and the savings that it reports."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.responses import (
    Chunk,
    CitedResponse,
    CompressionReport,
    FileSearchToolCall,
    ResponsesValueError,
    parse_input_item,
    parse_response,
    to_dict,
    tool_calls_of,
)

DATA: dict[str, Any] = {
    "id": "resp",
    "output": [
        {"type": "file_search_call", "id": "fs_1", "queries": [], "results": [
            {"file_id": "a", "filename": "a.pdf", "text": "aaaaaaaaaaaaaaaaaaaa"},
            {"file_id": "b", "filename": "b\n.pdf", "text": "bbbbbbbbbbbbbbbbbbbb"},
        ]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "stock", "arguments": "{}"},
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "sources": [
            {"type": "url", "url": "https://c"}, {"type": "result", "url": "https://d", "title": "D", "text": "dddddddddd"},
        ]}},
        {"type": "file_search_call", "id": "fs_2", "queries": [], "results": [
            {"file_id": "a", "filename": "a.pdf", "text": "AAAAAAAAAA"},
        ]},
        {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": "As [2] says.", "annotations": []}]},
    ],
}  # fmt: skip
ANSWER = {"type": "function_call_output", "call_id": "call_1", "output": "21 pieces"}


@pytest.fixture
def value() -> CitedResponse:
    return CitedResponse.of(parse_response(DATA), outputs=[parse_input_item(ANSWER)])


@pytest.mark.parametrize(
    ("mode", "left", "removed", "saved"),
    [
        ("all", [(1, "[1] a.pdf"), (2, "[2] b .pdf"), (None, "stock"), (3, ""), (4, "[4] D"), (1, "[1] a.pdf")], 0, 69 - 9 - 10 - 5 - 5 - 9),
        ("deduplicate", [(1, "a" * 20), (2, "b" * 20), (None, "21 pieces"), (3, ""), (4, "d" * 10)], 1, 10),
        ("nonrefed", [(2, "b" * 20), (None, "21 pieces")], 4, 40),
    ],
)  # fmt: skip
def test_a_mode_leaves_what_it_should(
    value: CitedResponse, mode: Any, left: list[tuple[int | None, str]], removed: int, saved: int
) -> None:
    short = value.compress_chunks(mode)
    assert [(chunk.number, chunk.content) for chunk in short.chunks] == left
    [report] = short.reports
    assert report == CompressionReport(
        mode=mode,
        chunks_before=6,
        chunks_after=6 - removed,
        characters_before=69,
        characters_after=69 - saved,
    )
    assert (report.removed_chunks, report.saved_characters) == (removed, saved)
    assert [citation.number for citation in short.citations] == [1, 2, 3, 4]


def test_the_response_is_compressed_with_its_chunks(value: CitedResponse) -> None:
    short = value.compress_chunks("deduplicate").compress_chunks("all").compress_chunks("nonrefed")
    output = to_dict(short.compressed_response)["output"]
    assert [result["text"] for result in output[0]["results"]] == ["[2] b .pdf"]
    assert output[1] == DATA["output"][1]
    assert output[2]["action"] == {"type": "search", "sources": []}
    assert output[3]["results"] == []
    assert output[4] == DATA["output"][4]
    assert [report.mode for report in short.reports] == ["deduplicate", "all", "nonrefed"]
    assert to_dict(short.response) == DATA
    assert to_dict(value.compressed_response) == DATA


def test_the_output_of_a_call_in_the_response_is_compressed_too() -> None:
    data = {**DATA, "output": [DATA["output"][1], {**ANSWER, "id": "fco_1"}]}
    short = CitedResponse.of(parse_response(data)).compress_chunks("all")
    assert to_dict(short.compressed_response)["output"][1]["output"] == "stock"
    call = short.compressed_calls[0]
    assert call.output is not None


def test_calls_of_earlier_responses_count_too() -> None:
    earlier = tool_calls_of(parse_response(DATA).output)
    later = parse_response({"id": "r", "output": [DATA["output"][-1]]})
    value = CitedResponse.of(later, tool_calls=earlier).compress_chunks("nonrefed")
    assert [chunk.number for chunk in value.chunks] == [2]
    assert to_dict(value.compressed_response) == to_dict(later)


def test_the_marker_stands_in_the_line(value: CitedResponse) -> None:
    data = {**DATA, "output": DATA["output"][:1]}
    short = CitedResponse.of(parse_response(data), marker="({number})").compress_chunks("all")
    assert [chunk.content for chunk in short.chunks] == ["(1) a.pdf", "(2) b .pdf"]


def test_a_title_that_is_too_long_is_cut() -> None:
    assert len(Chunk(content="", title="x" * 5000).stub()) == 120
    assert Chunk(content="").stub() == ""


def test_a_content_that_is_no_longer_than_its_line_stays() -> None:
    results = [{"file_id": "a", "text": text} for text in ("x", "x" * len("[1] a"), "x" * len("[1] a") + "y")]
    data = {"output": [{"type": "file_search_call", "queries": [], "results": results}]}
    short = CitedResponse.of(parse_response(data)).compress_chunks("all")
    assert [chunk.content for chunk in short.chunks] == ["x", "xxxxx", "[1] a"]
    assert [report.saved_characters for report in short.reports] == [1]


@pytest.mark.parametrize("mode", ["", "ALL", None, 3, []])
def test_an_unknown_mode_is_refused(value: CitedResponse, mode: Any) -> None:
    with pytest.raises(ResponsesValueError, match="expected all, deduplicate, nonrefed"):
        value.compress_chunks(mode)


def test_a_value_shows_little(value: CitedResponse) -> None:
    assert len(repr(value.install_citations())) < 400


def test_an_item_that_stands_there_twice_is_compressed_twice() -> None:
    output = parse_response({**DATA, "output": DATA["output"][:1]}).output * 2
    value = CitedResponse.of(parse_response({"id": "r"}).replace(output=output)).compress_chunks(
        "deduplicate"
    )
    left = to_dict(value.compressed_response)["output"]
    assert [len(item["results"]) for item in left] == [2, 0]


def test_calls_may_come_from_an_iterator() -> None:
    response = parse_response(DATA)
    value = CitedResponse.of(response, tool_calls=iter(tool_calls_of(response.output)))
    assert len(value.chunks) == 5


def test_a_tool_that_gives_no_chunks_is_told() -> None:
    class Odd(FileSearchToolCall):
        def chunkify(self) -> Any:
            return ["text"]

    call = Odd(parse_response(DATA).output[0])  # type: ignore[arg-type]
    with pytest.raises(ResponsesValueError, match=r"expected Chunk, got str @ chunkify\(\)"):
        CitedResponse.of(parse_response(DATA), tool_calls=[call])

"""Sources numbered, found again in the text, compressed: what holds for any calls, chunks and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk.responses import (
    AnnotationFileCitation,
    AnnotationURLCitation,
    Chunk,
    CitationMarker,
    CitedResponse,
    NumberedSource,
    ResponsesValueError,
    parse_response,
    to_dict,
)


def response(
    text: str = "",
    results: Sequence[Any] = (),
    *,
    annotations: Sequence[Any] = (),
    **more: Any,
) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    output = [
        {"type": "file_search_call", "id": f"fs_{number}", "queries": [], "results": found}
        for number, found in enumerate(results)
    ]
    message = {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "content": [part, {"type": "refusal", "refusal": "[1]"}],
    }
    return {
        "id": "resp",
        "output": [{"type": "reasoning", "id": "rs", "summary": []}, *output, message],
        **more,
    }


def found(file: str, page: int | None = None, text: str = "some words of the file") -> dict[str, Any]:
    at = {} if page is None else {"attributes": {"page_number": page}}
    return {"file_id": file, "filename": f"{file}.pdf", "text": text, **at}


def cited(*arguments: Any, **more: Any) -> CitedResponse:
    marker = more.pop("marker", "[{number}]")
    return CitedResponse.of(parse_response(response(*arguments, **more)), marker=marker).install_citations()


# ------------------------------------------------------------------------------------ equality


def test_annotations_are_equal_when_they_cite_the_same_place() -> None:
    page = AnnotationFileCitation(file_id="f", filename="a", index=1, page_number=2)
    assert page == AnnotationFileCitation(file_id="f", filename="b", index=9, page_number=2)
    assert page != AnnotationFileCitation(file_id="f", page_number=3)
    url = AnnotationURLCitation(url="f", title="t", start_index=1)
    assert url == AnnotationURLCitation(url="f", end_index=7)
    assert len({page, page.replace(index=3), url, url.replace(title=None)}) == 2
    assert page != url


def test_a_chunk_becomes_the_annotation_of_a_place() -> None:
    url = Chunk(content="", annotation=AnnotationURLCitation(url="u", title="t"))
    assert to_dict(url.as_annotation(start_index=3, end_index=6)) == {  # type: ignore[arg-type]
        "type": "url_citation", "url": "u", "title": "t", "start_index": 3, "end_index": 6,
    }  # fmt: skip
    file = Chunk(content="", annotation=AnnotationFileCitation(file_id="f", page_number=2))
    assert to_dict(file.as_annotation(start_index=3)) == {  # type: ignore[arg-type]
        "type": "file_citation", "file_id": "f", "page_number": 2, "index": 3,
    }  # fmt: skip
    assert Chunk(content="21").as_annotation() is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"content": 3}, "expected string @ Chunk.content"),
        ({"content": "", "number": 0, "annotation": AnnotationURLCitation(url="u")}, "numbered from 1"),
        ({"content": "", "number": "1", "annotation": AnnotationURLCitation(url="u")}, "numbered from 1"),
        ({"content": "", "number": 1}, "a number needs an annotation"),
        ({"content": "", "index": -1}, "counted from 0"),
        ({"content": "", "call": -1}, "counted from 0"),
    ],
)
def test_a_chunk_that_makes_no_sense_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ResponsesValueError, match=problem):
        Chunk(**fields)


# ------------------------------------------------------------------------------------ numbers


def test_sources_are_numbered_in_order_of_first_appearance_over_all_calls() -> None:
    value = cited(
        "", [[found("b"), found("a", 2), {"text": "?"}], [found("a", 1), found("b"), found("a", 2)]]
    )
    assert [chunk.number for chunk in value.chunks] == [1, 2, None, 3, 1, 2]
    assert [(c.number, c.title) for c in value.citations] == [(1, "b.pdf"), (2, "a.pdf"), (3, "a.pdf")]
    assert [chunk.call for chunk in value.chunks] == [0, 0, 0, 1, 1, 1]


def test_numbers_go_on_in_the_next_response() -> None:
    first = cited("", [[found("a"), found("b")]]).compress_chunks("nonrefed")
    assert first.chunks == ()
    then = CitedResponse.of(
        parse_response(response("[3]", [[found("c"), found("a")]])), citations=first.citations
    )
    assert [chunk.number for chunk in then.install_citations().chunks] == [3, 1]
    assert [c.number for c in then.install_citations().referenced] == [3]


def test_contradictions_are_refused() -> None:
    plain = parse_response(response())
    one, other = (
        NumberedSource(number=1, annotation=AnnotationURLCitation(url=url), title="") for url in "ab"
    )
    with pytest.raises(ResponsesValueError, match="a number or a source twice"):
        CitedResponse.of(plain, citations=[one, other])
    with pytest.raises(ResponsesValueError, match="a number or a source twice"):
        CitedResponse.of(
            plain, citations=[one, NumberedSource(number=2, annotation=one.annotation, title="")]
        )
    with pytest.raises(ResponsesValueError, match="a number that its source has not"):
        CitedResponse(response=plain, chunks=(Chunk(content="", annotation=one.annotation, number=1),))
    with pytest.raises(ResponsesValueError, match="chunk does not belong to any tool call"):
        CitedResponse(response=plain, chunks=(Chunk(content=""),))


# ------------------------------------------------------------------------------------ references

SOURCES = [[found("a"), found("b", 1), found("b", 2)]]


@pytest.mark.parametrize(
    ("text", "annotations", "referenced"),
    [
        ("nothing", [], []),
        ("as [2] says", [], [2]),
        ("[3][1]", [], [1, 3]),
        ("[03] [ 3] [33] 3 [3", [], []),
        ("[9999999999999999999999]", [], []),
        ("", [{"type": "file_citation", "file_id": "b", "page_number": 2, "index": 8}], [3]),
        ("", [{"type": "file_citation", "file_id": "b", "index": 8}], [2, 3]),
        ("", [{"type": "file_citation", "file_id": "a", "page_number": 9}], [1]),
        ("", [{"type": "file_citation", "file_id": "b", "page_number": 9}], [4]),
        ("", [{"type": "file_path", "file_id": "b"}], [2, 3]),
        ("", [{"type": "container_file_citation", "container_id": "c", "file_id": "a"}], [1]),
        ("", [{"type": "url_citation", "url": "a"}], [4]),
        ("[1]", [{"type": "file_citation", "file_id": "b", "page_number": 1}], [1, 2]),
    ],
)
def test_citations_are_referenced_by_marker_or_annotation(
    text: str, annotations: list[Any], referenced: list[int]
) -> None:
    value = cited(text, SOURCES, annotations=annotations)
    assert [c.number for c in value.referenced] == referenced
    assert [c.number for c in value.candidates] == [n for n in (1, 2, 3) if n not in referenced]


def test_cited_sources_of_no_chunk_are_numbered_behind_those_of_chunks() -> None:
    pages = [
        {"type": "url_citation", "url": url, "title": title, "start_index": 0, "end_index": end}
        for url, title, end in (("v", "V", 3), ("u", None, 5), ("v", "again", 9))
    ]
    files = [
        {"type": "file_citation", "file_id": file, "filename": name, "index": 1}
        for file, name in (("z", "z.pdf"), ("a", "a.pdf"))
    ]
    data = response("As [2] says", [[found("a", 1)]], annotations=[*pages, *files])
    data["output"].insert(0, {"type": "web_search_call", "id": "ws", "status": "completed"})
    value = CitedResponse.of(parse_response(data)).install_citations()
    assert [(c.number, c.title) for c in value.citations] == [
        (1, "a.pdf"), (2, "V"), (3, "u"), (4, "z.pdf"),
    ]  # fmt: skip
    assert value.referenced == value.citations
    assert value.unknown_markers == ()
    assert value.install_citations() == value
    assert value.annotate().install_citations().citations == value.citations
    assert value.compress_chunks("nonrefed").citations == value.citations
    then = CitedResponse.of(
        parse_response(response("", [[found("b")]], annotations=pages)), citations=value.citations
    )
    assert [c.number for c in then.install_citations().referenced] == [2, 3]
    assert [chunk.number for chunk in then.install_citations().chunks] == [5]


def test_of_a_cited_file_one_place_is_enough() -> None:
    page = {"type": "file_citation", "file_id": "f", "page_number": 2}
    whole = {"type": "file_citation", "file_id": "f"}
    for named in ([page, whole], [whole, page]):
        assert len(cited("", annotations=named).citations) == 1
    assert len(cited("", annotations=[page, {**page, "page_number": 3}, whole]).citations) == 2


def test_a_line_in_the_place_of_a_content_is_harmless_to_a_terminal() -> None:
    chunk = Chunk(content="x", title="a\x1b[31mb\nc")
    assert chunk.stub() == "a\\u001b[31mb c"


def test_annotations_that_nobody_knows_name_nothing() -> None:
    data = response("", [[found("a")]], annotations=[{"type": "rumour", "file_id": "a"}])
    value = CitedResponse.of(parse_response(data, unknown="keep")).install_citations()
    assert value.referenced == ()
    assert value.annotate() == value


def test_markers_of_no_citation_are_told() -> None:
    assert cited("[1] [7] [2] [9] [7]", [[found("a")]]).unknown_markers == (2, 7, 9)


@pytest.mark.parametrize(
    ("template", "text", "numbers"),
    [
        ("[{number}]", "a[1] [12]", [1, 12]),
        ("【{number}】", "【2】[1]", [2]),
        ("({number})", "(4) ((5))", [4, 5]),
        ("{number}", "3 14, 15. 016 1234567890", [3, 14, 15]),
        ("^{number}", "x^2 ^12", [2, 12]),
        (".*{number}+", ".*7+ 7+", [7]),
    ],
)
def test_markers_may_look_otherwise(template: str, text: str, numbers: list[int]) -> None:
    marker = CitationMarker(template)
    assert [number for number, _, _ in marker.find(text)] == numbers
    assert all(text[start:end] == marker.of(number) for number, start, end in marker.find(text))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("As A and B say [1, 2].", [1, 2]),
        ("[1,3]", [1, 3]),
        ("[1-3]", [1, 2, 3]),
        ("[1\u20132; 7]", [1, 2, 7]),
        ("[1, 3 - 4 and 9]", [1, 3, 4, 9]),
        ("[1][2]", [1, 2]),
        ("\u30101\u2020source\u3011\u30102\u2020source\u3011", [1, 2]),
        ("\u30103\u2020L12-L20\u3011 \u30104\u3011", [3, 4]),
        ("Six.[^1][^2, ^3]\n\n[^1]: rules.pdf", [1, 2, 3, 1]),
        ("[1](https://x.test)", [1]),
        ("[1950-1999]", list(range(1950, 2000))),
        ("[1990-2040] [3-1] [2-2] [1, 5-2]", []),
        ("[1 2] [1, 02] [1,] [-1] [1.5] [ 1] [x 1] [1a]", []),
    ],
)
def test_groups_and_ranges_are_read(text: str, numbers: list[int]) -> None:
    assert [number for number, _, _ in CitationMarker().find(text)] == numbers


@pytest.mark.parametrize(
    ("template", "text", "numbers"),
    [
        ("({number})", "(1, 2) (3-4) [5]", [1, 2, 3, 4]),
        ("\u3010{number}\u3011", "\u30101-2\u3011 [4]", [1, 2]),
        ("<c>{number}</c>", "<c>1,2</c>", [1, 2]),
        ("^{number}", "^1, 2", [1]),
    ],
)
def test_groups_of_other_markers_stand_between_their_signs(
    template: str, text: str, numbers: list[int]
) -> None:
    assert [number for number, _, _ in CitationMarker(template).find(text)] == numbers


UNREAD = [
    "[doc2]", "[1: p. 3]", "[0]", "[01]", "[1990-2040]", "[2-1]", "[1 2]", "[Smith 2020]", "\u30104:0\u2020source\u3011",
    "\uff3b\uff11\uff3d", "\u3014a1\u3015", "said.\u00b9", "word\u00b9\u00b2", "\u2460", "<sup>1</sup>", "<cite>2</cite>",
    '<ref id="3">', "(2)", "(1, 2)", "(1-3)", "\u00b9", "{1}", "(Source 2)", "(see doc 2, 3)", "(ref. #4)",
    "\ue200cite\ue202turn0file1\ue201",
]  # fmt: skip
NO_MARKERS = [
    "", "no digit [here] (nor here)", "in 2024", "(2024)", "(9)", "12 km\u00b2", "x\u00b2 + 3", "(x)\u00b2", "[1, 2]", "[1", "1]",
    "3 < 4 > 2", "<b>1</b>", "[a\n1]", "x^{2} and a{3} and \\{4}", "{100}", "(resulting 2)", "(see below)",
]  # fmt: skip


@pytest.mark.parametrize("marked", UNREAD)
def test_nothing_goes_while_a_marker_is_unread(marked: str) -> None:
    value = cited(f"As one reads {marked} here", [[*SOURCES[0], found("a")]])
    assert value.unread_markers
    assert all(each in f"As one reads {marked} here" for each in value.unread_markers)
    for mode in ("nonrefed", "deduplicate"):
        left = value.compress_chunks(mode)  # type: ignore[arg-type]
        assert left.chunks == value.chunks
        assert left.reports[-1].removed_chunks == 0
    assert {chunk.content for chunk in value.compress_chunks("all").chunks} != {"some words of the file"}


@pytest.mark.parametrize("text", NO_MARKERS)
def test_what_is_no_marker_keeps_nothing(text: str) -> None:
    value = cited(text, SOURCES)
    assert value.unread_markers == ()
    kept = value.compress_chunks("nonrefed").chunks
    assert [chunk.number for chunk in kept] == [c.number for c in value.referenced]


def test_what_another_template_does_not_read_is_unread() -> None:
    assert cited("[1]", SOURCES, marker="({number})").unread_markers == ("[1]",)
    assert cited("(1, 2)", SOURCES, marker="({number})").unread_markers == ()


def test_a_group_is_annotated_as_a_whole() -> None:
    text = to_dict(cited("So [1, 3].", SOURCES).annotate().response)["output"][-1]["content"][0]
    assert [(one["file_id"], one["index"]) for one in text["annotations"]] == [("a", 3), ("b", 3)]


def test_what_is_known_of_a_page_is_no_part_of_what_is_cited() -> None:
    page = AnnotationURLCitation(url="u", metadata={"author": "A", "year": 2026})
    assert page == AnnotationURLCitation(url="u")
    data = {"type": "url_citation", "url": "u", "metadata": {"author": "A", "year": 2026}}
    assert to_dict(page) == data
    (kept,) = cited("", annotations=[data]).citations
    assert kept.annotation.metadata == {"author": "A", "year": 2026}


@pytest.mark.parametrize("template", ["", "[n]", "{number}{number}", None, 3])
def test_a_marker_needs_a_number(template: Any) -> None:
    with pytest.raises(ResponsesValueError, match="needs {number}, once"):
        CitationMarker(template)


def test_markers_become_annotations() -> None:
    results = [[found("a", 3)]]
    value = cited("See [1], [1] and [5].", results)
    pages = {"type": "web_search_call", "action": {"type": "open_page", "url": "u"}, "id": "w"}
    value = CitedResponse.of(value.response.replace(output=(*value.response.output, *parse_response({"output": [pages]}).output))).install_citations()  # fmt: skip
    text = to_dict(value.annotate().response)["output"][-2]["content"][0]
    file = {"type": "file_citation", "file_id": "a", "filename": "a.pdf", "page_number": 3}
    assert text["annotations"] == [{**file, "index": 4}, {**file, "index": 9}]
    assert value.annotate().annotate().response is not value.response
    assert to_dict(value.annotate().annotate().response) == to_dict(value.annotate().response)
    assert value.annotate().referenced == value.referenced
    value = cited(
        "[1]", [], annotations=[{"type": "url_citation", "url": "u", "start_index": 0, "end_index": 3}]
    )
    known = NumberedSource(number=1, annotation=AnnotationURLCitation(url="u"), title="U")
    once = CitedResponse.of(value.response, citations=[known])
    assert to_dict(once.annotate().response) == to_dict(once.response)


# ------------------------------------------------------------------------------------ any sources, any text


@st.composite
def values(draw: st.DrawFn) -> CitedResponse:
    results = st.builds(
        found, st.sampled_from("abc"), st.sampled_from([None, 1, 2]), st.text("xy \n", max_size=30)
    )
    calls = draw(st.lists(st.lists(results | st.just({"text": "of no file"}), max_size=4), max_size=4))
    text = "".join(
        draw(
            st.lists(
                st.sampled_from(["[1]", "[2]", "[1, 3]", "[2-3]", "[10]", "word ", "[", "2", "[x 1]"]),
                max_size=6,
            )
        )
    )
    named = draw(st.lists(st.sampled_from("abcd"), max_size=1))
    return CitedResponse.of(parse_response(response(text, calls, annotations=[{"type": "file_citation", "file_id": file} for file in named])))  # fmt: skip


@given(values())
def test_installing_twice_is_installing_once(value: CitedResponse) -> None:
    once = value.install_citations()
    assert once.install_citations() == once
    assert [c.number for c in once.citations] == list(range(1, len(once.citations) + 1))
    appeared = list(dict.fromkeys(chunk.number for chunk in once.chunks if chunk.number is not None))
    assert appeared == [c.number for c in once.citations][: len(appeared)]
    assert {c.number for c in once.citations[len(appeared) :]} <= {c.number for c in once.referenced}
    by_number = {chunk.number: chunk.annotation for chunk in once.chunks}
    assert all(by_number[chunk.number] == chunk.annotation for chunk in once.chunks if chunk.annotation)
    assert {c.number for c in (*once.referenced, *once.candidates)} == {c.number for c in once.citations}


@given(values(), st.lists(st.sampled_from(["all", "deduplicate", "nonrefed"]), min_size=1, max_size=4))
def test_no_compression_changes_a_number_or_loses_a_referenced_source(
    value: CitedResponse, modes: list[Any]
) -> None:
    before = value.install_citations()
    after = value
    for mode in modes:
        after = after.compress_chunks(mode)
    numbers = {chunk.annotation: chunk.number for chunk in before.chunks}
    assert all(numbers[chunk.annotation] == chunk.number for chunk in after.chunks)
    assert after.citations == before.citations
    assert after.referenced == before.referenced
    found = {chunk.number for chunk in before.chunks}
    assert {c.number for c in before.referenced} & found <= {chunk.number for chunk in after.chunks}
    assert after.install_citations() == after
    assert after.compress_chunks(modes[-1]).chunks == after.chunks
    assert value.reports == ()
    assert [report.mode for report in after.reports] == modes
    for call, chunks in enumerate(after.compressed_calls):
        assert [chunk.content for chunk in chunks.chunkify()] == [
            c.content for c in after.chunks if c.call == call
        ]

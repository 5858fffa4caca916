"""Real answers of the Responses API: read as types, written back as the same JSON, their streams added up.

Some are in the project, hundreds next to it in ``$CROSSWALK_CAPTURES``. Without those the tests run on the
former. Those next to it get keep-alives at some places. With ``--crosswalk-sample all`` they get them at
every one, as those of the project always do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import FrozenObject, MappingError, ResponseDelta, normalize_stream, to_json as canonical_json
from crosswalk.responses import (
    ErrorBody,
    Response,
    ResponseAccumulator,
    ResponseErrorEvent,
    ResponseKeepAliveEvent,
    ResponseSnapshot,
    ResponsesParseError,
    ResponseStreamEvent,
    SnapshotError,
    StreamHandler,
    Update,
    parse,
    parse_event,
    parse_response,
    read_events,
    to_json,
)
from crosswalk.testing import Capture, load_captures

ROOT = Path(__file__).parents[3]
BESIDE = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()

CUT = {
    "crash_v1_resp_stream": "Ollama's runner was killed",
    "ollama_crash_stream": "Ollama's runner was killed",
    "crash_resp_stream": "vLLM's engine was killed",
    "vllm_crash_stream": "vLLM's engine was killed",
}
"""Streams that end before their response does."""

UNKNOWN = {
    "pydantic-ai__openai_responses-openai_previous_response_id__1": "written by hand: its status is `complete`",
}
"""Cases that are read with ``unknown="keep"``."""

SHORTER_AT_THE_END = {
    "openai_failed_stream": "fails with an empty output; the snapshot keeps what was streamed",
    "rig__codex_tool_choice-specific_multiple_functions_use_allowed_tools": "stores nothing, so the response that ends its stream has no output; the snapshot keeps what was streamed",
}
"""Streams whose last snapshot has more items than the response in the terminal event."""

SAYS_OTHERWISE_AT_THE_END = {
    "lingua__responsesProgrammaticToolCallingToolsParam-responses-response-streaming": "encrypts anew",
    "pydantic-ai__openai_responses-openai_responses_code_execution_return_image_stream": "encrypts anew",
    "pydantic-ai__openai_responses-openai_responses_model_web_search_tool_stream": "encrypts anew",
    "rig__responses_sessions-reasoning_session_two_tool_calls_streaming": "encrypts anew",
    "ruby_llm__pt-5-nano_can_use_tools_without_parameters_in_multi-turn_streaming_conversations": "encrypts anew",
    "ruby_llm__vcr_chat_responses_protocol_dialects_with_azure_gpt-5-nano_streams_responses": "encrypts anew",
    "rig__reasoning_roundtrip-streaming-v2": "encrypts anew, with new ids (Copilot)",
    "pydantic-ai__openai_responses-openai_responses_raw_cot_stream_openrouter": "makes a new id (OpenRouter)",
    "pydantic-ai__responses-openai_responses_model_mcp_list_tools_stream_backfills_missing_results": "lists the tools of MCP servers only at the end",
    "v1_resp_texttool_auto_stream": "sends the items of calls with text only at the end (Ollama)",
    "ollama_texttool_auto_stream": "sends the items of calls with text only at the end (Ollama)",
    "rig__codex_tool_choice-specific_multiple_functions_use_allowed_tools": "see SHORTER_AT_THE_END",
}
"""Streams whose events, added up, do not say what the response in the terminal event says."""


DELTAS_LACK_TEXT = {
    "v1_resp_texttool_auto_stream": "Ollama holds text back that might become a call",
    "ollama_texttool_auto_stream": "Ollama holds text back that might become a call",
    "ai__openai-shell-container.1-v2": "shortened by hand",
}
"""Streams whose deltas do not add up to the text of the response."""


def captures() -> Iterator[Capture]:
    for name in ("openai_responses", "ollama", "vllm"):
        folder = ROOT / "tests/captures" / name
        yield from (load_captures(folder, paths=("/v1/responses",)) if folder.is_dir() else ())
    if not BESIDE.is_dir():
        return
    for server in sorted({entry["server"] for entry in manifest("live")}):
        yield from load_captures(BESIDE / "live" / server, paths=("/v1/responses",))
    wanted = {e["file"] for e in manifest("recorded") if "openai-responses" in (e["shape"], e["api"])}
    for folder in sorted({Path(file).parent for file in wanted}):
        for capture in load_captures(BESIDE / "recorded" / folder):
            if str(capture.file.relative_to(BESIDE / "recorded")) in wanted:
                yield capture


def manifest(folder: str) -> list[dict[str, Any]]:
    lines = (BESIDE / folder / "MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


ALL = list(captures())
STREAMS = [c for c in ALL if c.file.suffix == ".sse"]
BODIES = [c for c in ALL if c.file.suffix != ".sse"]


def name_of(capture: Capture) -> str:
    return f"{capture.file.parent.name}-{capture.case}"


def events_of(capture: Capture) -> list[ResponseStreamEvent]:
    unknown = "keep" if capture.case in UNKNOWN else "raise"
    return [parse_event(data, unknown=unknown) for data, _ in capture.frames()]


@pytest.mark.skipif(not BESIDE.is_dir(), reason=f"no captures beside the project ({BESIDE.name} is absent)")
def test_the_captures_beside_the_project_are_read_too() -> None:
    assert len(STREAMS) > 150
    assert len(BODIES) > 200


@pytest.mark.parametrize("capture", BODIES, ids=name_of)
def test_a_body_comes_back_as_it_was(capture: Capture) -> None:
    sent = orjson.loads(capture.body)
    unknown = "keep" if capture.case in UNKNOWN else "raise"
    kind = Response if sent.get("object") == "response" else ErrorBody
    value = parse(kind, capture.body, unknown=unknown)
    assert orjson.loads(to_json(value)) == sent
    assert parse(kind, to_json(value), unknown=unknown) == value
    assert kind is Response or not {"id", "output"} & sent.keys()


@pytest.mark.parametrize("capture", STREAMS, ids=name_of)
def test_an_event_comes_back_as_it_was(capture: Capture) -> None:
    for event, (data, _) in zip(events_of(capture), capture.frames(), strict=True):
        assert orjson.loads(to_json(event)) == orjson.loads(data)


def snapshots_of(capture: Capture) -> list[ResponseSnapshot]:
    accumulator = ResponseAccumulator()
    return [accumulator.add(event) for event in events_of(capture)]


@pytest.mark.parametrize("capture", STREAMS, ids=name_of)
def test_a_stream_adds_up_to_the_response_of_its_terminal_event(capture: Capture) -> None:
    *before, last = snapshots_of(capture)
    terminal = getattr(last.event, "response", None)
    assert last.is_final == (capture.case not in CUT)
    if not last.is_final:
        return
    if isinstance(last.event, ResponseErrorEvent):
        assert last.response.status == "failed"
    elif capture.case in SHORTER_AT_THE_END:
        assert len(last.response.output) > len(terminal.output)
        assert to_json(last.response.replace(output=terminal.output)) == to_json(terminal)
    else:
        assert to_json(last.response) == to_json(terminal)
    if terminal is not None and terminal.output:
        said = orjson.loads(to_json(before[-1].response)).get("output")
        same = said == orjson.loads(to_json(terminal)).get("output")
        assert same == (capture.case not in SAYS_OTHERWISE_AT_THE_END)
    if last.text:
        assert (text_of_deltas(capture) == last.text) == (capture.case not in DELTAS_LACK_TEXT)


def text_of_deltas(capture: Capture) -> str:
    """The result of the deltas alone, without events that repeat as a whole what others have sent in pieces."""
    accumulator = ResponseAccumulator()
    for event in events_of(capture):
        if not str(event.type).endswith(".done") and not hasattr(event, "response"):
            accumulator.add(event)
    assert accumulator.snapshot is not None
    return accumulator.snapshot.text


@pytest.mark.parametrize("capture", [c for c in STREAMS if c.case in CUT], ids=name_of)
def test_a_stream_that_was_cut_has_no_final_response(capture: Capture) -> None:
    accumulator = ResponseAccumulator()
    for event in events_of(capture):
        accumulator.add(event)
    assert accumulator.snapshot is not None
    assert accumulator.snapshot.response.output
    with pytest.raises(SnapshotError, match="ended here"):
        accumulator.final()


@pytest.mark.parametrize("capture", [c for c in ALL if c.case in UNKNOWN], ids=name_of)
def test_what_is_kept_would_be_refused_by_default(capture: Capture) -> None:
    with pytest.raises(ResponsesParseError, match=r"unknown .* @ \$"):
        parse_response(capture.body)


# Keep-alives, which OpenAI sends while a model takes its time: nobody reads anything out of them.

EVERY_PLACE_UP_TO = 40


def with_beats(capture: Capture, places: Container[int], beat: bytes) -> list[bytes]:
    """The data of the stream's events with a keep-alive before each that has one of *places*."""
    events = [data for data, _ in capture.frames()]
    mixed = []
    for place, data in enumerate([*events, None]):
        mixed += [beat] * (place in places)
        mixed += [data] * (data is not None)  # type: ignore[list-item]
    return mixed  # type: ignore[return-value]


@pytest.fixture
def everywhere(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--crosswalk-sample") == "all")


def beats_for(capture: Capture, everywhere: bool = False) -> Iterator[tuple[Container[int], bytes]]:
    """Keep-alives at all places at once, numbered in several ways, and at each place alone, if they are few."""
    count = len(capture.frames())
    is_own = capture.file.is_relative_to(ROOT)
    for number in (b"0", b"3", b"99999999", b"null"):
        yield range(count + 1), b'{"type":"keepalive","sequence_number":%b}' % number
    at_each = count <= EVERY_PLACE_UP_TO and (is_own or everywhere)
    for place in range(count + 1) if at_each else (0, 1, 2, count - 1, count):
        yield {place}, b'{"type":"keepalive","sequence_number":%d}' % place


@pytest.mark.sweep
@pytest.mark.parametrize("capture", STREAMS, ids=name_of)
def test_keep_alives_at_any_place_change_no_snapshot(capture: Capture, everywhere: bool) -> None:
    unknown: Any = "keep" if capture.case in UNKNOWN else "raise"
    expected = [
        to_json(snapshot.response)
        for snapshot in snapshots_of(capture)
        if not isinstance(snapshot.event, ResponseKeepAliveEvent)
    ]
    for places, beat in beats_for(capture, everywhere):
        accumulator = ResponseAccumulator()
        found, before = [], b""
        for data in with_beats(capture, places, beat):
            snapshot = accumulator.add(parse_event(data, unknown=unknown))
            if not isinstance(snapshot.event, ResponseKeepAliveEvent):
                before = to_json(snapshot.response)
                found.append(before)
            elif before and len(places) == 1:  # type: ignore[arg-type]
                assert to_json(snapshot.response) == before
        assert found == expected
        assert (capture.case in CUT) is not accumulator.snapshot.is_final  # type: ignore[union-attr]


class Shown:
    """The calls that a display gets."""

    def __init__(self) -> None:
        self.updates: list[Update] = []

    def open(self) -> None:
        pass

    def show(self, update: Update) -> None:
        self.updates.append(update)

    def close(self) -> None:
        pass


def piped(capture: Capture, data: list[bytes]) -> tuple[Response | None, list[Update]]:
    unknown: Any = "keep" if capture.case in UNKNOWN else "raise"
    shown = Shown()
    body = b"".join(b"data: %b\n\n" % event for event in data)
    try:
        response = StreamHandler(shown, on_failure="at_end").run(read_events([body], unknown=unknown))
    except SnapshotError:
        response = None
    return response, shown.updates


@pytest.mark.sweep
@pytest.mark.parametrize("capture", STREAMS, ids=name_of)
def test_keep_alives_at_any_place_change_nothing_that_is_shown(capture: Capture) -> None:
    expected = piped(capture, [data for data, _ in capture.frames()])
    assert (expected[0] is None) is (capture.case in CUT)
    for places, beat in [*beats_for(capture)][:5]:
        assert piped(capture, with_beats(capture, places, beat)) == expected


NUMBER = FrozenObject({"sequence_number": 0})
NOTHING = ResponseDelta(0, extensions=NUMBER)


def canonical(data: list[bytes]) -> tuple[Any, list[ResponseDelta]]:
    """The answer or the error with what came, and the deltas that say anything.

    If an event has a number, the extensions keep the last one, be it that of a keep-alive. An answer without
    a time has that of its reading.
    """
    body = b"".join(b"data: %b\n\n" % event for event in data)
    stream = normalize_stream([body], "openai_responses", unknown="keep")
    deltas, answer, kind = [], None, None
    try:
        for delta in stream:
            bare = attrs.evolve(delta, index=0, extensions=NUMBER)
            deltas += [bare] * (bare != NOTHING)
        answer = stream.response
    except MappingError as error:
        answer, kind = error.partial, type(error)
    said = answer and orjson.loads(canonical_json(answer))
    if said:
        said["metadata"].get("extensions", {}).pop("sequence_number", None)
        if "created" in said["metadata"].get("provenance", {}):
            del said["created"]
    return (said, kind), deltas


@pytest.mark.sweep
@pytest.mark.parametrize("capture", STREAMS, ids=name_of)
def test_keep_alives_at_any_place_change_nothing_that_is_mapped(capture: Capture) -> None:
    expected = canonical([data for data, _ in capture.frames()])
    assert expected[0][0]
    for places, beat in [*beats_for(capture)][:12]:
        assert canonical(with_beats(capture, places, beat)) == expected

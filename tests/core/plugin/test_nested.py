"""Strings that hold JSON, also in base64: opened before hooks and tables see them, and changed inside by the kit."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import (
    ErrorInfo,
    ErrorKind,
    FramingError,
    InvalidJSONError,
    Limits,
    MappingError,
    NestingTooDeepError,
    Registry,
    UnknownEventError,
    detect,
    normalize,
    normalize_stream,
)
from crosswalk.plugins import (
    FINISH,
    TEXT,
    FieldTable,
    FinishReason,
    MappingState,
    ProviderInfo,
    ResponseDelta,
    TableDialect,
    count,
    hookimpl,
)
from crosswalk.testing import Capture, check_capture

ROWS = {"said": TEXT, "why": FINISH, "out": count("completion_tokens"), "in": count("prompt_tokens")}


class Parcel(TableDialect):
    """A server whose parcels hold JSON in base64, in a JSON text."""

    title = "Parcel"
    nested: ClassVar[dict[str, str]] = {"body": "json", "body.parts[].bytes": "base64+json"}
    fields = FieldTable({f"body.parts[].bytes.{key}": row for key, row in ROWS.items() if row.take})
    finish_reasons: ClassVar[dict[str, FinishReason]] = {"end": FinishReason.STOP}
    marks = ("body.parcel",)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """Read the fault inside."""
        fault = body["body"]["fault"] if isinstance(body.get("body"), dict) else "closed"
        return ErrorInfo(ErrorKind.SERVER, fault, status=status)


class Letter(TableDialect):
    """A server whose events are JSON in a text."""

    title = "Letter"
    nested: ClassVar[dict[str, str]] = {"result": "json", "note": "json"}
    fields = FieldTable({f"result.{key}": row for key, row in ROWS.items()})
    finish_reasons: ClassVar[dict[str, FinishReason]] = {"end": FinishReason.STOP}


class Lowering(Letter):
    """The same with a mistake: every text is in lower case."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Lower the text inside."""
        inner = event.get("result")
        if isinstance(inner, dict) and isinstance(inner.get("said"), str):
            inner["said"] = inner["said"].lower()
        return super().map_delta(event, state)


def registry_of(plugin: object) -> Registry:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "nested")
    return registry


def parcel(*inners: Any) -> dict[str, Any]:
    parts = [{"bytes": b64encode(orjson.dumps(inner)).decode()} for inner in inners]
    return {"body": orjson.dumps({"parts": parts, "parcel": 1}).decode()}


def letter(**inner: Any) -> dict[str, Any]:
    return {"result": orjson.dumps(inner).decode()}


def stream_of(*events: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in events)


def test_a_body_and_a_stream_are_opened_alike() -> None:
    registry = registry_of(Parcel())
    body = parcel({"said": "Good ", "empty": {}}, {"said": "evening", "why": "end", "more": [1]})
    whole = normalize(orjson.dumps(body), "nested", registry=registry)
    events = parcel({"said": "Good ", "empty": {}}), parcel({"said": "evening", "why": "end", "more": [1]})
    stream = normalize_stream([stream_of(*events)], "nested", registry=registry)
    assert [delta.content_delta for delta in stream if delta.content_delta] == ["Good ", "evening"]
    decoded = normalize(body, "nested", registry=registry)
    assert whole.text == stream.response.text == decoded.text == "Good evening"
    left = {"body": {"parts": [{"bytes": {"empty": {}}}, {"bytes": {"more": [1]}}], "parcel": 1}}
    assert whole.metadata.extensions == decoded.metadata.extensions == left
    assert list(whole.raw_events or ()) == [body]


def test_halves_of_a_character_inside_are_joined() -> None:
    events = [
        b'{"result": "{\\"said\\": \\"Hi \\\\ud83d\\"}"}',
        b'{"result": "{\\"said\\": \\"\\ude00!\\"}"}',
    ]
    body = b"".join(b"data: %s\n\n" % event for event in (*events, orjson.dumps(letter(why="end"))))
    stream = normalize_stream([body], "nested", registry=registry_of(Letter()))
    assert [delta.content_delta for delta in stream][:2] == ["Hi \N{GRINNING FACE}", "!"]


@pytest.mark.parametrize("value", ["", None, {"said": "Open", "why": "end"}])
def test_what_is_no_text_with_something_in_it_stays(value: Any) -> None:
    body = {"body": {"parts": [{"bytes": value}, parcel({"why": "end"})["body"]]}}
    with pytest.raises(MappingError) as caught:  # a text in place of an object
        normalize(body, "nested", registry=registry_of(Parcel()))
    assert caught.value.place == "event 1, body.parts[1]"


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"body": "{no"}, InvalidJSONError, "event 2, body: not JSON at byte 1"),
        ({"body": '"text"'}, InvalidJSONError, "event 2, body: the JSON is neither an object nor an array"),
        (
            {"body": '{"parts": [{"bytes": "?!"}]}'},
            InvalidJSONError,
            "event 2, body.parts[].bytes: not base64",
        ),
        (
            parcel([[[[]]]]),
            NestingTooDeepError,
            "event 2, body.parts[].bytes: the event is nested deeper than 7",
        ),
    ],
)
def test_what_cannot_be_opened_is_a_typed_error(
    bad: dict[str, Any], error: type[FramingError], message: str
) -> None:
    body = stream_of(parcel({"said": "So far"}), bad)
    with pytest.raises(error, match=message.replace("[", r"\[")) as caught:
        list(normalize_stream([body], "nested", registry=registry_of(Parcel()), limits=Limits(depth=7)))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "So far"


def test_an_unknown_event_is_kept_opened() -> None:
    body = stream_of({"note": '{"odd": {}}'}, letter(said="Hi", why="end"))
    registry = registry_of(Letter())
    with pytest.raises(UnknownEventError):
        list(normalize_stream([stream_of({"note": "{}"})], "nested", registry=registry))
    stream = normalize_stream([body], "nested", registry=registry, unknown="keep")
    assert [delta.content_delta for delta in stream if delta.content_delta] == ["Hi"]
    assert stream.response.metadata.extensions == {"note": {"odd": {}}}


def test_detection_looks_inside() -> None:
    registry = registry_of(Parcel())
    assert detect([parcel({"said": "Hi"})], registry) == "nested"
    mapper = registry.mapper("nested")
    assert not mapper.recognizes({"body": "no JSON"})


@pytest.mark.parametrize(
    ("body", "message"), [(b'{"body": "{\\"fault\\": \\"down\\"}"}', "down"), (b'{"body": "{"}', "closed")]
)
def test_an_http_error_is_opened_as_far_as_possible(body: bytes, message: str) -> None:
    response = normalize(body, "nested", registry=registry_of(Parcel()), status=500)
    assert response.error_info is not None
    assert response.error_info.message == message


@pytest.mark.parametrize(
    ("nested", "error"),
    [
        (["result"], TypeError),
        ({"result": "yaml"}, TypeError),
        ({"result[0]": "json"}, ValueError),
        ({"": "json"}, ValueError),
    ],
)
def test_a_wrong_declaration_is_refused(nested: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"nested|path"):
        ProviderInfo(title="Wrong", nested=nested)


def test_the_kit_changes_what_is_inside() -> None:
    body = orjson.dumps(letter(said="Good Evening", why="end", out=5) | {"in": 3})
    events = letter(said="Good"), letter(said=" Evening"), letter(why="end", out=5)
    captures = [
        Capture("talk", Path("talk"), body),
        Capture("talk_stream", Path("talk_stream"), stream_of(*events), stream=True),
    ]
    right, wrong = (
        [
            problem
            for capture in captures
            for problem in check_capture(registry_of(plugin).mapper("nested"), capture, others=captures)
        ]
        for plugin in (Letter(), Lowering())
    )
    assert [str(problem) for problem in right] == []
    assert {problem.path for problem in wrong} == {"result.said"}

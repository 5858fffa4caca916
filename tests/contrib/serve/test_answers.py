"""Answers, streams and errors as each client reads them. Unknown fields of a provider reach its own clients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from crosswalk import ChatResponse, ErrorInfo, StreamEvent, normalize, normalize_stream
from crosswalk.convert import WireForm
from crosswalk.formats.tables import TABLES
from crosswalk.service import UnsupportedRequestError
from crosswalk.types import ResponseDelta, StreamEventType
from crosswalk_serve.answers import StreamWriter, whole
from crosswalk_serve.http import BadRequestError, failed, info_of
from crosswalk_serve.requests import Incoming, read_request
from wires import body, chunk, sse

TURN = {"role": "user", "content": "Once"}
ASKED: dict[WireForm, dict[str, Any]] = {
    WireForm.OPENAI_CHAT: {"messages": [TURN]},
    WireForm.OPENAI_COMPLETIONS: {"prompt": "Once"},
    WireForm.OPENAI_RESPONSES: {"input": "Once"},
    WireForm.ANTHROPIC: {"messages": [TURN], "max_tokens": 9},
    WireForm.OLLAMA: {"messages": [TURN]},
    WireForm.OLLAMA_GENERATE: {"prompt": "Once"},
    WireForm.GEMINI: {"contents": [{"parts": [{"text": "Once"}]}]},
}
NDJSON = (WireForm.OLLAMA, WireForm.OLLAMA_GENERATE)


def asked(form: WireForm, **more: Any) -> Incoming:
    return read_request(form, orjson.dumps({"model": "m", **ASKED[form], **more}))


def events(given: Iterable[ResponseDelta], response: Any) -> Iterable[StreamEvent]:
    """The result of a service for deltas, as far as it matters here."""
    for delta in given:
        if delta.finish_reason is None:
            yield StreamEvent(StreamEventType.OUTPUT_TEXT_DELTA, delta=delta)
        else:
            yield StreamEvent.terminal(response(), delta)


def streamed(incoming: Incoming, sent: bytes, provider: str) -> tuple[bytes, StreamWriter]:
    deltas = normalize_stream([sent], provider)
    writer = StreamWriter(incoming, lambda: deltas.partial)
    return b"".join(map(writer.feed, events(deltas, lambda: deltas.response))), writer


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
WHOLE = orjson.dumps(
    body({"role": "assistant", "content": "upon a time", "reasoning_content": "hm"}, usage=USAGE)
)
STREAM = sse(
    chunk({"role": "assistant", "reasoning_content": "hm"}),
    chunk({"content": "upon "}),
    chunk({"content": "a time"}),
    chunk({}, "stop"),
    chunk(usage=USAGE),
)


@pytest.mark.parametrize("form", WireForm)
def test_an_answer_is_written_in_the_clients_form(form: WireForm) -> None:
    written = whole(asked(form), normalize(WHOLE, "openai"))
    assert written.status == 200
    assert normalize(written.body, form.provider).text == "upon a time"
    says_reasoning = form is not WireForm.OPENAI_COMPLETIONS
    assert says_reasoning is not any(loss.path.startswith("segments[0]") for loss in written.losses)


@pytest.mark.parametrize("form", WireForm)
def test_a_stream_is_written_in_the_clients_form(form: WireForm) -> None:
    sent, writer = streamed(asked(form, stream=True), STREAM, "openai")
    back = normalize(sent, form.provider)
    assert back.text == "upon a time"
    assert back.is_complete
    is_poor = form.provider == "ollama" or form is WireForm.OPENAI_COMPLETIONS
    assert bool(writer.losses) is is_poor
    assert writer.fail(ErrorInfo("server", "too late")) == b""


@pytest.mark.parametrize("form", WireForm)
def test_a_stream_that_fails_ends_with_the_error_in_the_clients_form(form: WireForm) -> None:
    deltas = normalize_stream([STREAM], "openai")
    writer = StreamWriter(asked(form, stream=True), lambda: deltas.partial)
    sent = writer.feed(StreamEvent(StreamEventType.CREATED)) + b"".join(
        writer.feed(StreamEvent(StreamEventType.OUTPUT_TEXT_DELTA, delta=delta)) for delta in [*deltas][1:2]
    )
    sent += writer.fail(ErrorInfo("server", "the gateway is ending"))
    back = normalize(sent, form.provider)
    assert back.text == "upon "
    assert back.error_info is not None
    assert back.error_info.message == "the gateway is ending"
    assert writer.fail(ErrorInfo("server", "again")) == b""


def test_an_answer_that_begins_anew_ends_with_an_error() -> None:
    deltas = normalize_stream([STREAM], "openai")
    writer = StreamWriter(asked(WireForm.OPENAI_CHAT, stream=True), lambda: deltas.partial)
    given = [*events(deltas, lambda: deltas.response)]
    sent = b"".join(map(writer.feed, [*given[:2], StreamEvent(StreamEventType.RETRIED), *given]))
    back = normalize(sent, "openai")
    assert (back.text, back.finish_reason) == ("upon ", "error")


@pytest.mark.parametrize("form", [WireForm.OPENAI_CHAT, WireForm.OPENAI_COMPLETIONS])
def test_counts_alone_are_sent_to_who_asked_for_them(form: WireForm) -> None:
    silent, _ = streamed(asked(form, stream=True), STREAM, "openai")
    told, _ = streamed(asked(form, stream=True, stream_options={"include_usage": True}), STREAM, "openai")
    assert b'"choices":[]' not in silent
    assert b'"choices":[],"usage"' in told


def test_a_completion_says_the_prompt_once_more_where_that_is_asked_for() -> None:
    incoming = asked(WireForm.OPENAI_COMPLETIONS, echo=True)
    written = whole(incoming, normalize(WHOLE, "openai"))
    assert normalize(written.body, "openai").text == "Onceupon a time"
    sent, _ = streamed(incoming, STREAM, "openai")
    assert normalize(sent, "openai").text == "Onceupon a time"
    error = normalize(b'{"error":{"message":"no"}}', "openai", status=500)
    assert whole(incoming, error).status == 500


# Errors.


@pytest.mark.parametrize("form", WireForm)
def test_an_error_is_one_in_the_clients_form(form: WireForm) -> None:
    body, status = failed(form, ErrorInfo("authentication", "wrong key", status=401), "r1")
    if form is WireForm.ANTHROPIC:
        assert orjson.loads(body)["request_id"] == "r1"
    assert status == 401
    back = normalize(body, form.provider, status=401).error_info
    assert back is not None
    assert (back.kind, back.message) == ("authentication", "wrong key")


@pytest.mark.parametrize(
    ("error", "param", "status"),
    [
        (BadRequestError("must be a string", "messages[0].role"), "messages[0].role", 400),
        (BadRequestError("too long", status=413), None, 413),
        (UnsupportedRequestError("no", options=["top_k", "seed"]), "top_k", 400),
        (UnsupportedRequestError("no"), None, 400),
    ],
)
def test_what_is_wrong_with_a_request_is_told_with_its_place(
    error: BadRequestError | UnsupportedRequestError, param: str | None, status: int
) -> None:
    body, sent = failed(WireForm.OPENAI_CHAT, info_of(error), "r1")
    said = orjson.loads(body)["error"]
    assert (said["param"], said["type"], sent) == (param, "invalid_request_error", status)
    assert str(error) in said["message"]


# The same dialect in and out.

NEW = {"deep": [1, {"er": "x"}]}
CHAT_BODY = body(
    {"role": "assistant", "content": "x", "new_in_message": NEW}, usage={**USAGE, "new_count": 7}, new_top=NEW
)
CHAT_STREAM = sse(
    chunk({"role": "assistant", "content": "x", "new_in_message": NEW}),
    chunk({}, "stop"),
    chunk(usage={**USAGE, "new_count": 7}, new_top=NEW),
)
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "new_in_message": NEW,
            "content": [{"type": "output_text", "text": "x", "annotations": []}],
        },
        {"id": "n_1", "type": "new_item", "new": NEW},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "new_count": 7},
    "new_top": NEW,
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "x", "new_in_message": NEW}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2, "new_count": 7},
    "new_top": NEW,
}
LINE = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "x", "new_in_message": NEW},
    "done": True,
    "done_reason": "stop",
    "eval_count": 2,
    "new_count": 7,
    "new_top": NEW,
}
MESSAGE_STREAM = b"".join(
    b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event))
    for event in (
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "", "new_in_message": NEW},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2, "new_count": 7},
        },
        {"type": "message_stop"},
    )
)
RESPONSE_STREAM = b"".join(
    b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event))
    for event in (
        {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.completed", "sequence_number": 1, "response": RESPONSE},
    )
)  # fmt: skip
OWN = [
    pytest.param(WireForm.OPENAI_CHAT, CHAT_BODY, CHAT_STREAM, id="chat"),
    pytest.param(WireForm.OPENAI_RESPONSES, RESPONSE, RESPONSE_STREAM, id="responses"),
    pytest.param(WireForm.ANTHROPIC, MESSAGE, MESSAGE_STREAM, id="messages"),
    pytest.param(WireForm.OLLAMA, LINE, orjson.dumps(LINE) + b"\n", id="ollama"),
]
FIELDS = [b'"new_in_message":' + orjson.dumps(NEW), b'"new_top":' + orjson.dumps(NEW), b'"new_count":7']


@pytest.mark.parametrize(("form", "said", "stream"), OWN)
@pytest.mark.parametrize("keep_raw", [True, False])
def test_a_new_field_reaches_a_client_of_the_same_dialect(
    form: WireForm, said: dict[str, Any], stream: bytes, keep_raw: bool
) -> None:
    response: ChatResponse = normalize(said, form.provider, keep_raw=keep_raw, unknown="keep")
    written = whole(asked(form), response).body
    assert [field for field in FIELDS if field not in written] == []
    sent, _ = streamed(asked(form, stream=True, **_usage(form)), stream, form.provider)
    assert [field for field in FIELDS if field not in sent] == []
    assert normalize(sent, form.provider, unknown="keep").text == "x"


def _usage(form: WireForm) -> dict[str, Any]:
    return {"stream_options": {"include_usage": True}} if form is WireForm.OPENAI_CHAT else {}


NAMES = (
    "pageToken",
    "nextPageToken",
    "page_token",
    "max_tokens",
    "tokenizer",
    "api_key",
    "tools[0].headers.Authorization",
)
"""Names that look like those of secrets, besides those in the tables."""


@pytest.mark.parametrize("form", WireForm)
def test_a_refusal_reaches_the_client_whatever_the_name_of_its_place(form: WireForm) -> None:
    """What a message quotes is hidden all the same."""
    table_paths = [row.path.replace("[]", "[0]") for table in TABLES.values() for row in table.rows]
    problem = "names no model of this list"
    for path in dict.fromkeys((*NAMES, *table_paths)):
        errors = (
            BadRequestError(problem, path),
            UnsupportedRequestError(f"it cannot express {path} ({problem})", options=[path]),
        )
        for error in errors:
            body, status = failed(form, info_of(error), "r1")
            assert status == 400
            assert problem in body.decode(), path
            assert "<secret>" not in body.decode(), path
    body, _ = failed(form, info_of(BadRequestError("pageToken: hunter2, Bearer hunter2", "pageToken")), "r1")
    assert b"hunter2" not in body

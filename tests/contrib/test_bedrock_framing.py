"""The binary framing of Bedrock's streams: section 1 of the fact sheet."""

from __future__ import annotations

import asyncio
import base64
import binascii
import struct
import sys
from collections.abc import AsyncIterator, Iterable

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from bedrock_frames import BEGIN, END, METADATA, binary, event as event_of, message, piece, read, stop
from crosswalk import (
    ChatResponse,
    ConfigurationError,
    CrosswalkError,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    LimitError,
    Limits,
    MappingError,
    anormalize_stream,
    normalize,
    normalize_stream,
)
from crosswalk_bedrock import EventStreamError
from crosswalk_bedrock.eventstream import EventStreamDecoder, aevents, events
from tries import tries

SENT = (BEGIN, piece(0, {"text": "H\u2028i\n"}), piece(0, {"text": "!"}), stop(0), END, METADATA)


def test_binary_bytes_are_read_as_they_come() -> None:
    """No helper is needed: the provider knows its own framing, cut anywhere, and reports damage."""
    sent = binary(*SENT)
    whole = normalize(sent, "bedrock")
    stream = normalize_stream((sent[at : at + 7] for at in range(0, len(sent), 7)), "bedrock")
    assert list(stream)
    assert stream.response.same_content(whole)
    with pytest.raises(IncompleteStreamError) as caught:
        normalize(sent[:-1], "bedrock")
    assert caught.value.partial is not None
    assert caught.value.partial.text == whole.text


def test_a_binary_stream_reads_as_its_events_do() -> None:
    response = normalize(b"".join(events([binary(*SENT)])), "bedrock", id_factory=lambda: "x")
    assert response.same_content(read(*SENT, id_factory=lambda: "x"))
    stream = normalize_stream(events([binary(*SENT)]), "bedrock")
    assert [delta.content_delta for delta in stream if delta.content_delta] == ["H\u2028i\n", "!"]
    assert stream.response.finish_reason is FinishReason.STOP


@given(st.lists(st.integers(0, len(binary(*SENT))), max_size=8))
@settings(max_examples=tries(50))
def test_it_does_not_matter_where_it_was_cut(cuts: list[int]) -> None:
    sent, places = binary(*SENT), sorted(cuts)
    chunks = [sent[a:b] for a, b in zip([0, *places], [*places, len(sent)], strict=True)]
    assert list(events(chunks)) == list(events([sent]))


def test_byte_by_byte_and_asynchronously() -> None:
    async def source() -> AsyncIterator[bytes]:
        for byte in binary(*SENT):
            yield bytes([byte])

    async def response() -> ChatResponse:
        return await anormalize_stream(aevents(source()), "bedrock").response()

    assert asyncio.run(response()).text == "H\u2028i\n!"


def test_a_payload_on_many_lines_is_one_event() -> None:
    sent = event_of("messageStop", b'{\r\n  "stopReason": "end_turn"\n}')
    assert list(events([sent])) == [b'{"messageStop":{    "stopReason": "end_turn" }}\n']


def test_what_an_invoked_model_says_is_its_vendors_own() -> None:
    said = [
        {
            "type": "message_start",
            "message": {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    chunks = [
        event_of("chunk", {"bytes": base64.b64encode(orjson.dumps(one)).decode(), "p": "ab"}) for one in said
    ]
    assert normalize_stream_text(chunks, "anthropic").text == "Hi"
    broken = message(
        b'{"message":"slow down"}', message_type="exception", exception_type="throttlingException"
    )
    response = normalize_stream_text([*chunks[:3], broken], "anthropic")
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.ERROR)


def normalize_stream_text(chunks: Iterable[bytes], provider: str) -> ChatResponse:
    stream = normalize_stream(events(chunks), provider)
    for _ in stream:
        pass
    return stream.response


def test_frames_keep_payload_and_name() -> None:
    """The stored bytes of a response show the kind of each event. Its surroundings do not turn other bytes into JSON."""
    decoder = EventStreamDecoder()
    broken = message(b'{"message":"m"}', message_type="exception", exception_type="validationException")
    forged = event_of("contentBlockStop", b'{},"messageStop":{}')
    assert decoder.decode(event_of("messageStart", b'{ "role":"assistant"}') + broken + forged) == [
        (b'{"messageStart":{ "role":"assistant"}}', "messageStart"),
        (b'{"validationException":{"message":"m"}}', "validationException"),
        (b'{},"messageStop":{}', "contentBlockStop"),
    ]
    assert decoder.flush() == []


@pytest.mark.parametrize(
    ("sent", "kind", "text"),
    [
        (
            message(
                b'{"message":"slow down"}', message_type="exception", exception_type="throttlingException"
            ),
            ErrorKind.RATE_LIMIT,
            "slow down",
        ),
        (
            message(b'"slow down"', message_type="exception", exception_type="throttlingException"),
            ErrorKind.RATE_LIMIT,
            "slow down",
        ),
        (
            message(b"", message_type="error", error_code="InternalServerException", error_message="oops"),
            ErrorKind.SERVER,
            "oops",
        ),
    ],
)
def test_exceptions_and_errors_of_the_framing(sent: bytes, kind: ErrorKind, text: str) -> None:
    response = normalize_stream_text([binary(*SENT[:2]), sent], "bedrock")
    assert response.text == "H\u2028i\n"
    assert (response.segments[-1].content, response.segments[-1].metadata["kind"]) == (text, kind.value)


GOOD = event_of("messageStart", {"role": "assistant"})


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        (b'{"message": "this is JSON"}', "no eventstream"),
        (GOOD[:8] + b"\0\0\0\0" + GOOD[12:], "no eventstream"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "ChecksumMismatch"),
        (GOOD[:40] + b"\xff" + GOOD[41:], "ChecksumMismatch"),
        (message(b"{}", headers=b"\x01a\x63"), "KeyError"),
        (message(b"{}", headers=b"\x02\xff\xfe\x00"), "UnicodeDecodeError"),
        (message(b"{}", headers=b"\x05a"), "damaged"),
        (message(b"{}", headers=b"\x01a\x00\x01a\x00"), "DuplicateHeader"),
        (message(b"{}", headers=b"\x01a\x00" * 6000), "impossible lengths"),
        (struct.pack(">III", 12, 0, binascii.crc32(struct.pack(">II", 12, 0))), "impossible lengths"),
        (message(b"{}"), "not an event, exception or error"),
        (message(b"{}", message_type="event"), "not an event, exception or error"),
        (event_of("messageStart", b"{"), "not JSON"),
        (event_of("chunk", b"[]"), "without bytes"),
        (event_of("chunk", b'{"bytes":"?"}'), "without bytes"),
        (event_of("chunk", b'{"bytes":1}'), "without bytes"),
    ],
)
def test_damaged_bytes_are_a_typed_error(sent: bytes, cause: str) -> None:
    with pytest.raises(EventStreamError, match=cause):
        list(events([sent]))


def test_what_came_before_the_damage_is_kept() -> None:
    stream = normalize_stream(events([binary(*SENT[:2]) + b"garbage, and more"]), "bedrock")
    with pytest.raises(EventStreamError, match="message 3"):
        list(stream)
    assert stream.partial.text == "H\u2028i\n"


def test_a_stream_that_ends_inside_a_message_is_incomplete() -> None:
    stream = normalize_stream(events([binary(*SENT)[:-1]]), "bedrock")
    with pytest.raises(IncompleteStreamError, match="message 6"):
        list(stream)
    assert stream.partial.text == "H\u2028i\n!"


def test_limits_hold_and_an_error_stays() -> None:
    decoder = EventStreamDecoder(Limits(line_bytes=200))
    long = event_of("messageStart", b" " * 200)
    assert decoder.decode(GOOD + long) == [(b'{"messageStart":{"role":"assistant"}}', "messageStart")]
    for call in (lambda: decoder.decode(GOOD), decoder.flush):
        with pytest.raises(LimitError, match="200 bytes"):
            call()
    with pytest.raises(LimitError, match="the stream is longer"):
        list(events([GOOD, GOOD], Limits(total_bytes=len(GOOD) + 5)))


@given(st.binary(max_size=60), st.integers(0, len(GOOD)))
@settings(max_examples=tries(100))
def test_any_bytes_give_frames_or_a_typed_error(noise: bytes, at: int) -> None:
    try:
        list(events([GOOD[:at] + noise + GOOD[at:]]))
    except CrosswalkError as error:
        assert isinstance(error, MappingError)


def test_without_botocore_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)
    with pytest.raises(ConfigurationError, match="botocore"):
        list(events([GOOD]))


@pytest.mark.parametrize("sent", [[GOOD], [GOOD[:5], GOOD[5:]], []])
def test_whole_messages_leave_nothing(sent: list[bytes]) -> None:
    assert list(events(sent)) == [b'{"messageStart":{"role":"assistant"}}\n'] * bool(sent)

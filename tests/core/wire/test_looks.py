"""The error for other input than JSON says what it looks like, and quotes nothing of it."""

from __future__ import annotations

import base64
import gzip
import zlib

import pytest

from crosswalk import DetectionError, InvalidJSONError, normalize
from crosswalk.wire.framing import looks_like

BODY = b'{"message": {"role": "assistant", "content": "Hi"}, "done": true, "done_reason": "stop"}'


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (gzip.compress(BODY), "gzip"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 30, "zstd"),
        (zlib.compress(BODY), "zlib"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"%PDF-1.7", "a PDF"),
        (BODY.decode().encode("utf-16"), "UTF-16"),
        (BODY.decode().encode("utf-16-le"), "UTF-16"),
        (BODY.decode().encode("utf-16-be"), "UTF-16"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + BODY, "HTTP headers"),
        (b"content-type: application/json\r\ndate: today\r\n\r\n" + BODY, "HTTP headers"),
        (b"\n<!DOCTYPE html><title>502</title>", "HTML"),
        (b"<HTML>", "HTML"),
        (b"<?xml version='1.0'?><Error/>", "XML"),
        (base64.b64encode(BODY), "base64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_commonest_mistakes_are_named(data: bytes, name: str) -> None:
    said = looks_like(data)
    assert said is not None
    assert said.startswith(name)
    with pytest.raises(DetectionError, match=f"the input is not JSON: it looks like {name}"):
        normalize(data)
    if not data.startswith(b"content"):  # which begins like SSE
        with pytest.raises(InvalidJSONError, match=f"not JSON at byte [01]: .*; it looks like {name}"):
            normalize(data, "ollama")


@pytest.mark.parametrize("data", [b'{"model": "caf\xe9"}', b'data: {"model": "caf\xe9"}\n\n'])
def test_another_encoding_is_named(data: bytes) -> None:
    with pytest.raises(DetectionError, match="it looks like text in another encoding, such as Latin-1"):
        normalize(data)


@pytest.mark.parametrize(
    "data", [b"upstream connect error", b"\x8b\x05\x80", BODY[:30], b"ABCDabcd", b'{"caf\xc3']
)
def test_the_rest_is_not_guessed_at(data: bytes) -> None:
    assert looks_like(data) is None
    with pytest.raises(DetectionError, match="no provider recognizes this payload"):
        normalize(data)


def test_an_empty_payload_is_called_empty() -> None:
    with pytest.raises(DetectionError, match="no provider recognizes an empty payload"):
        normalize(b" \n")


def test_what_is_broken_further_on_has_been_json() -> None:
    with pytest.raises(InvalidJSONError, match="not JSON at byte 30: unexpected end of data$"):
        normalize(BODY[:30], "ollama")

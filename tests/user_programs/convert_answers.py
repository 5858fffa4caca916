"""Write an answer and a request for the client of another API."""

from __future__ import annotations

import json
from collections.abc import Iterable

from crosswalk import normalize, normalize_stream
from crosswalk.convert import DangerousLossError, convert, convert_stream, fold, to_response, unfold
from crosswalk.service import build_http_request, read_request


def passed_on(body: bytes) -> bytes:
    try:
        converted = convert(normalize(body, "anthropic"), "openai-chat")
    except DangerousLossError as error:
        return str(error).encode()
    for loss in converted.report.losses:
        print(loss.path, loss.rule.name, loss.reason)
    return converted.value


def streamed(chunks: Iterable[bytes]) -> Iterable[bytes]:
    stream = convert_stream(normalize_stream(chunks, "anthropic"), "openai-responses")
    yield from stream
    print(stream.report.is_lossless)


def asked(body: bytes) -> bytes:
    incoming = read_request(body, "anthropic")
    sent = build_http_request(incoming.request, "ollama")
    print(sent.body["options"], [(one.field, one.reason) for one in sent.dropped], sent.headers)
    return json.dumps(sent.body).encode()


response = to_response(normalize(b"{}")).value
turns = fold(response.output)
print([turn.message.text for turn in turns], unfold(turns) == response.output)

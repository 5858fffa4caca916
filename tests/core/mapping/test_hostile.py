"""Findings of an attack on the package, so that they stay mended."""

from __future__ import annotations

import pytest

from crosswalk import (
    InvalidJSONError,
    UnknownEventError,
    UnknownFinishReasonError,
    normalize,
    to_json,
)
from wires import line, ndjson, sse


def test_a_lone_surrogate_in_an_error_body_is_text() -> None:
    """It is not JSON: the provider's error is still reported, and can be written."""
    for body, provider, status in (
        (rb'{"error":{"message":"m","code":"\ud800"}}', "vllm", 400),
        (rb'{"error":"{\"code\":\"\\ud800\"}"}', "ollama", 200),
    ):
        response = normalize(body, provider, status=status)
        assert response.error_info is not None
        assert to_json(response)


def test_a_word_of_the_wire_is_cleaned_before_it_stands_in_a_message() -> None:
    """No escape sequence, no newline, no key. The whole word stays an attribute."""
    with pytest.raises(UnknownEventError) as unknown:
        normalize(b'{"type":"\\u001b[2Jabc\\nX"}', "vllm")
    assert str(unknown.value).isprintable()
    word = "sk-SECRETSECRETSECRET1234"
    with pytest.raises(UnknownFinishReasonError) as caught:
        normalize(ndjson(line(done=word)), "ollama")
    assert word not in f"{caught.value} {caught.value!r}"
    assert caught.value.reason == word


def test_a_count_that_could_not_be_written_stays_as_it_was_sent() -> None:
    """Its sum with another must fit into 64 bits. The answer is none the worse."""
    response = normalize(ndjson(line("Hi", done="stop", prompt_eval_count=2**63)), "ollama")
    assert (response.text, response.metadata.extensions["prompt_eval_count"]) == ("Hi", 2**63)
    assert response.metadata.provenance["metadata.extensions.prompt_eval_count"] == "mistyped"


def test_a_decoded_body_must_be_json() -> None:
    """NaN would silently become null."""
    with pytest.raises(InvalidJSONError, match="not a JSON object"):
        normalize({"message": {"content": "x"}, "done": True, "x": float("nan")}, "ollama")


def test_an_error_that_comes_as_a_stream_is_read_as_one() -> None:
    """Its error event counts. An answer filed under an error status is kept, but never quoted."""
    error = normalize(sse({"error": {"message": "boom", "code": 500}}), "vllm", status=500)
    assert error.refusal == "boom"
    answer = sse({"choices": [{"delta": {"content": "MODELCONTENT"}}]})
    response = normalize(answer, "vllm", status=500)
    assert response.refusal == "HTTP 500"
    assert response.error_info is not None
    assert "MODELCONTENT" in str(response.error_info.raw)
    broken = normalize(b"data: {not json}\n\n", "vllm", status=502)
    assert broken.refusal == "data: {not json}"


@pytest.mark.parametrize("status", [0, -1, 99, 1000, True, "404", None])
def test_what_is_no_status_is_refused(status: object) -> None:
    """A wrong status must not pass for success."""
    with pytest.raises(ValueError, match="status is an HTTP status from 100 to 999"):
        normalize(b"{}", "vllm", status=status)  # type: ignore[arg-type]

"""The log's lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from crosswalk import IncompleteStreamError, normalize
from crosswalk.text import set_log_content

ANSWER = (
    b'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"secret words"},'
    b'"done":true,"done_reason":"stop","eval_count":3}'
)


@pytest.fixture(autouse=True)
def no_content_afterwards() -> Iterator[None]:
    yield
    set_log_content(False)


def test_a_response_is_one_structured_record(caplog: pytest.LogCaptureFixture) -> None:
    """NFR-034: at DEBUG, with OpenTelemetry's fields, and no content anywhere."""
    with caplog.at_level(logging.DEBUG, "crosswalk"):
        response = normalize(ANSWER, "ollama")
    (record,) = caplog.records
    assert record.getMessage() == "ollama answered: stop"
    fields = vars(record)
    assert fields["event.name"] == "crosswalk.response"
    assert fields["gen_ai.response.id"] == response.id
    assert fields["gen_ai.usage.output_tokens"] == 3
    assert "secret" not in str(fields)


def test_content_is_logged_only_where_the_settings_allow_it(caplog: pytest.LogCaptureFixture) -> None:
    """Design, section 8: then within the content limit."""
    set_log_content(True)
    with caplog.at_level(logging.DEBUG, "crosswalk"):
        normalize(ANSWER, "ollama")
    assert vars(caplog.records[0])["crosswalk.content"] == "secret words"


def test_an_error_response_is_logged_with_its_correlation_id(caplog: pytest.LogCaptureFixture) -> None:
    """NFR-037: at INFO, with the kind of error."""
    with caplog.at_level(logging.INFO, "crosswalk"):
        response = normalize(b"slow down", "vllm", status=429)
    fields = vars(caplog.records[0])
    assert (fields["error.type"], fields["gen_ai.response.id"]) == ("rate_limit", response.id)


def test_what_cannot_be_mapped_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """Provider, place and kind of error, and the id of the partial answer. Before the first event there is none."""
    cut = ANSWER.replace(b'"done":true', b'"done":false')
    with caplog.at_level(logging.INFO, "crosswalk"), pytest.raises(IncompleteStreamError) as caught:
        normalize(cut, "ollama")
    fields = vars(caplog.records[0])
    assert fields["error.type"] == "IncompleteStreamError"
    assert fields["gen_ai.provider.name"] == "ollama"
    assert fields["crosswalk.place"] == "after event 1"
    assert caught.value.partial is not None
    assert fields["gen_ai.response.id"] == caught.value.partial.id
    assert "secret" not in str(fields)
    with caplog.at_level(logging.INFO, "crosswalk"), pytest.raises(IncompleteStreamError):
        normalize(b"", "ollama")
    assert "gen_ai.response.id" not in vars(caplog.records[1])

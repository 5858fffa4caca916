"""The meanings of an HTTP client's errors, for both libraries."""

from __future__ import annotations

from typing import Any

import attrs
import httpx
import httpx2
import pytest

from crosswalk import ChatResponse, ErrorKind, Provenance
from crosswalk.service import as_cancelled, completed, failure_of
from crosswalk.service.endpoint import CANCELLED


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("ConnectTimeout", ErrorKind.TIMEOUT, "connect_timeout"),
        ("ReadTimeout", ErrorKind.TIMEOUT, "transport_timeout"),
        ("ConnectError", ErrorKind.SERVER, "connect_error"),
        ("ProxyError", ErrorKind.SERVER, "connect_error"),
        ("UnsupportedProtocol", ErrorKind.INVALID_REQUEST, "not_http"),
        ("DecodingError", ErrorKind.SERVER, "decoding_error"),
        ("RemoteProtocolError", ErrorKind.SERVER, "connection_lost"),
    ],
)
def test_errors_of_both_libraries_mean_the_same(library: Any, name: str, kind: ErrorKind, code: str) -> None:
    info = failure_of(getattr(library, name)("with a header"), ("h.example", 8000))
    assert info is not None
    assert (info.kind, info.code) == (kind, code)
    assert "h.example:8000" in info.message
    assert "header" not in info.message


def test_what_is_no_failure_of_the_exchange_means_nothing() -> None:
    assert failure_of(ValueError("wrong"), ("h.example", None)) is None


def test_a_model_that_nobody_asked_for_is_not_made_up() -> None:
    failed = ChatResponse.error(CANCELLED, model="unknown")
    absent = {**failed.metadata.provenance, "model": Provenance.ABSENT}
    for model, expected, why in ((None, "unknown", "absent"), ("tiny", "tiny", "derived")):
        response = attrs.evolve(failed, metadata=attrs.evolve(failed.metadata, provenance=absent))
        response = completed(as_cancelled(response), model, [], is_stream=True)
        assert (response.model, response.metadata.provenance["model"]) == (expected, why)
        assert response.finish_reason == "cancelled"

"""Cloudflare Workers AI: its captures, invented after public documents, its own answers and the envelope."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import (
    ConfigurationError,
    ErrorKind,
    FinishReason,
    MappingError,
    Provenance,
    UnknownEventError,
    WireTypeError,
    normalize,
    registry,
)
from crosswalk.plugins import Recognition
from crosswalk.service import Endpoint
from crosswalk.service.endpoint import resolve
from crosswalk.testing import ProviderConformance
from crosswalk_cloudflare import plugin
from wires import body, one, outcome, read, sse


class TestCloudflare(ProviderConformance):
    provider = "cloudflare"
    captures = "../captures/cloudflare"
    snapshots = "../../snapshots"
    sample = 12


def enveloped(result: Any, **more: Any) -> dict[str, Any]:
    return {"result": result, "success": True, "errors": [], "messages": [], **more}


# ------------------------------------------------------------------------------ the envelope


def test_what_the_envelope_says_more_stays_in_the_extensions() -> None:
    answer = one("cloudflare", enveloped({"response": "Hi", "model": "x"}, messages=["slow"], result_info={}))
    left = {"result": {"model": "x"}, "messages": ["slow"], "result_info": {}}
    assert answer.metadata.extensions.thawed() == left


@pytest.mark.parametrize("wrong", [None, "text", {}, {"odd": 1}])
def test_an_envelope_without_an_answer_is_refused(wrong: Any) -> None:
    with pytest.raises(UnknownEventError):
        one("cloudflare", enveloped(wrong))


@pytest.mark.parametrize(
    ("event", "how"),
    [
        (enveloped(None), Recognition.CERTAIN),
        ({"response": "x", "p": "abc"}, Recognition.CERTAIN),
        ({"response": "x"}, Recognition.POSSIBLE),
        ({"response": "x", "done": False}, Recognition.NO),
        ({"response": {"choices": []}, "vendor": "openai"}, Recognition.NO),
        (body({"content": "x"}), Recognition.POSSIBLE),
        ({"results": []}, Recognition.NO),
        (5, Recognition.NO),
    ],
)
def test_its_marks(event: Any, how: Recognition) -> None:
    assert plugin.recognizes(event) is how


# ------------------------------------------------------------------------------ errors


def failed(code: Any, **more: Any) -> dict[str, Any]:
    return {
        "result": None,
        "success": False,
        "errors": [{"code": code, "message": "No."}],
        "messages": [],
        **more,
    }


@pytest.mark.parametrize(
    ("code", "status", "kind", "retryable"),
    [
        (3007, 408, ErrorKind.TIMEOUT, True),
        (3036, 429, ErrorKind.RATE_LIMIT, False),
        (3040, 429, ErrorKind.RATE_LIMIT, True),
        (5016, 403, ErrorKind.PERMISSION, False),
        (5007, 400, ErrorKind.MODEL_UNAVAILABLE, False),
        (3006, 413, ErrorKind.INVALID_REQUEST, False),
        (10000, 401, ErrorKind.AUTHENTICATION, False),
        (99999, 500, ErrorKind.SERVER, True),
    ],
)
def test_the_code_of_the_first_error_says_its_kind(
    code: int, status: int, kind: ErrorKind, retryable: bool
) -> None:
    info = normalize(failed(code), "cloudflare", status=status).error_info
    assert info is not None
    assert (info.kind, info.retryable, info.code, info.message) == (kind, retryable, str(code), "No.")


@pytest.mark.parametrize(
    "event",
    [failed(None), failed("odd"), {"errors": ["No."]}, {"success": False}, {"error": {"message": "No."}}],
)
def test_an_error_of_any_shape_ends_a_stream(event: dict[str, Any]) -> None:
    answer = read("cloudflare", sse({"response": "Hel", "p": "a"}, event))[1]
    assert (answer.text, answer.finish_reason) == ("Hel", FinishReason.ERROR)


def test_an_error_that_is_a_text_is_read() -> None:
    info = normalize(b"upstream timed out", "cloudflare", status=504).error_info
    assert info is not None
    assert info.kind is ErrorKind.TIMEOUT


# ------------------------------------------------------------------------------ its own answers


@pytest.mark.parametrize(
    "call",
    [
        {"name": "f", "arguments": {"a": 1}},
        {"name": "f", "arguments": '{"a":1}'},
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
    ],
)
def test_calls_without_function_are_calls(call: dict[str, Any]) -> None:
    answer = one("cloudflare", enveloped({"response": None, "tool_calls": [call, call]}))
    assert [(call.name, call.parsed()) for call in answer.tool_calls] == [("f", {"a": 1})] * 2
    assert (answer.finish_reason, answer.text) == (FinishReason.TOOL_CALLS, "")
    assert not [key for key in answer.metadata.extensions if key != "result"]


@pytest.mark.parametrize("function", [{}, None])
def test_a_call_beside_an_empty_function_has_its_own_name(function: Any) -> None:
    call = {"name": "f", "arguments": {"a": 1}, "function": function}
    answer = one("cloudflare", enveloped({"response": None, "tool_calls": [call]}))
    assert [(found.name, found.parsed()) for found in answer.tool_calls] == [("f", {"a": 1})]
    assert answer.metadata.extensions.thawed() == {}
    nameless = enveloped({"response": None, "tool_calls": [{"function": function}]})
    with pytest.raises(MappingError, match="tool call 0 has no name"):
        one("cloudflare", nameless)


def test_what_a_call_says_more_stays_in_the_extensions() -> None:
    call = {"name": "f", "arguments": {}, "function": None, "odd": 1}
    answer = one(
        "cloudflare",
        enveloped({"response": None, "tool_calls": [call, {"function": {"name": "g", "odd": 2}}]}),
    )
    left = [{"odd": 1}, {"function": {"odd": 2}}]
    assert answer.metadata.extensions.thawed() == {"result": {"tool_calls": left}}


def test_an_object_of_json_mode_is_its_text() -> None:
    answer = one("cloudflare", enveloped({"response": {"a": [1]}}))
    assert answer.text == '{"a":[1]}'
    assert answer.metadata.provenance["message.content"] is Provenance.DERIVED


def test_a_response_of_another_type_is_refused() -> None:
    with pytest.raises(WireTypeError):
        one("cloudflare", enveloped({"response": 5}))


def test_an_event_without_a_response_is_unknown() -> None:
    assert isinstance(
        outcome("cloudflare", sse({"response": "Hi", "p": "a"}, {"odd": 1}))[1], UnknownEventError
    )


# ------------------------------------------------------------------------------ requests


def test_the_account_is_part_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", "abc")
    monkeypatch.delenv("CLOUDFLARE_BASE_URL", raising=False)
    endpoint, mapper = Endpoint("cloudflare", model="m", api_key="k"), registry.mapper("cloudflare")
    assert resolve(endpoint, mapper).base_url == "https://api.cloudflare.com/client/v4/accounts/abc/ai/v1"
    monkeypatch.delenv("CLOUDFLARE_ACCOUNT_ID")
    with pytest.raises(ConfigurationError, match="CLOUDFLARE_ACCOUNT_ID"):
        resolve(endpoint, mapper)


@pytest.mark.parametrize("provider", ["cloudflare", None])
def test_a_stream_of_the_responses_api_is_not_the_native_one(provider: str | None) -> None:
    """Its events have a ``response`` too. Without a provider, all that speak the API read it the same way."""
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": "Hi", "annotations": []}]  # type: ignore[assignment]
    about = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    events = [
        {"type": "response.created", "response": {**about, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**about, "status": "completed", "output": [item]}},
    ]
    response = normalize(sse(*events), provider)
    assert (response.text, response.is_complete) == ("Hi", True)

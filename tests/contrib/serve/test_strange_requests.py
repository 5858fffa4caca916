"""Whatever a client sends is read or refused: no other error, and none when it is then built for a provider."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from client_requests import REQUESTS
from crosswalk.convert import WireForm
from crosswalk.errors import CrosswalkError
from crosswalk.service import build_http_request
from crosswalk.types import dump_json
from crosswalk_serve.http import BadRequestError
from crosswalk_serve.requests import read_request
from tries import tries

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.sampled_from([2**64, -(2**63) - 1]),
        st.floats(allow_nan=False),
        st.text(max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def strange(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    """*body* with something else at some place, or two, or with something more there."""
    changed = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 2))):
        at: Any = changed
        while True:
            keys = [*at] if isinstance(at, dict) else [*range(len(at))]
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(at[key], dict | list) or draw(st.integers(0, 3)) == 0:
                at[key] = draw(VALUES)
                break
            at = at[key]
        if isinstance(at, dict) and draw(st.booleans()):
            at[draw(st.text(max_size=3))] = draw(VALUES)
    return changed


@pytest.mark.parametrize("name", REQUESTS)
@settings(max_examples=tries(60))
@given(data=st.data())
def test_a_strange_request_is_read_or_refused(name: str, data: st.DataObject) -> None:
    form, body = REQUESTS[name]
    try:
        incoming = read_request(form, dump_json(data.draw(strange(body))))
    except BadRequestError as error:
        assert error.status == 400
        return
    for provider in ("openai", "vllm", "anthropic", "ollama", "openai_responses"):
        with suppress(CrosswalkError):
            build_http_request(incoming.request, provider, on_unsupported="drop")


ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 2**64, "enum": [2**70]}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    ("form", "wish"),
    [
        (
            WireForm.OPENAI_CHAT,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": ANSWER_SCHEMA},
                }
            },
        ),
        (WireForm.OLLAMA, {"format": ANSWER_SCHEMA}),
    ],
)
@pytest.mark.parametrize(
    "provider", ["openai", "anthropic", "ollama", "openai_responses", "gemini", "cohere"]
)
def test_an_integer_of_a_schema_keeps_its_digits(form: WireForm, wish: dict[str, Any], provider: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **wish}
    incoming = read_request(form, dump_json(body))
    built = build_http_request(incoming.request, provider, on_unsupported="drop")
    for digits in (b"18446744073709551616", b"1180591620717411303424"):
        assert digits in dump_json(built.body)


@pytest.mark.parametrize("form", WireForm)
@given(body=st.binary(max_size=20))
def test_bytes_are_read_or_refused(form: WireForm, body: bytes) -> None:
    with pytest.raises(BadRequestError):
        read_request(form, body)


@pytest.mark.parametrize("provider", ["openai", "vllm", "anthropic", "gemini", "ollama", "openai_responses"])
def test_a_long_number_in_the_schema_of_an_answer_is_sent_with_every_digit(provider: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**64}}, "required": ["n"]}
    asked = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
    }
    request = read_request(WireForm.OPENAI_CHAT, dump_json(asked)).request
    built = build_http_request(request.asked, provider, on_unsupported="drop")
    assert b"18446744073709551616" in dump_json(built.body)

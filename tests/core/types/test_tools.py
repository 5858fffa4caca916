"""Tool calls: whole, and as fragments."""

from __future__ import annotations

import pytest

from crosswalk.errors import ResponseValidationError, ToolCallArgumentsError
from crosswalk.types import ToolCall, ToolCallDelta


def test_arguments_are_the_exact_text() -> None:
    """Design, section 4: what the model wrote, with its spaces. Decoded when asked for."""
    call = ToolCall("c1", "weather", '{ "city" : "Bern" }')
    assert call.arguments == '{ "city" : "Bern" }'
    assert call.parsed() == {"city": "Bern"}


def test_no_arguments_are_an_empty_object() -> None:
    """A tool without parameters is called with none."""
    assert ToolCall("c1", "now").parsed() == {}
    assert ToolCall("c1", "now").has_valid_arguments


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ('{"city": "Be', "not JSON"),
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ('"{}"', "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"a": 1, "a": 2}', "a key is repeated"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_bad_arguments_are_a_typed_error(arguments: str, cause: str) -> None:
    """P4: invalid arguments are kept, and fail when they are decoded, naming the call."""
    with pytest.raises(
        ToolCallArgumentsError, match=f"arguments of tool call 'c1' to 'weather': {cause}"
    ) as caught:
        ToolCall("c1", "weather", arguments).parsed()
    assert (caught.value.name, caught.value.call_id) == ("weather", "c1")
    assert not ToolCall("c1", "weather", arguments).has_valid_arguments
    assert ToolCall("c1", "weather", arguments, "custom").has_valid_arguments


@pytest.mark.parametrize(("id", "name", "wrong"), [("", "n", "id"), ("i", "", "name")])
def test_a_call_needs_id_and_name(id: str, name: str, wrong: str) -> None:
    """NFR-016."""
    with pytest.raises(ResponseValidationError, match=f"tool call {wrong} cannot be empty"):
        ToolCall(id, name)


@pytest.mark.parametrize("index", [-1, True, "0", 1.0, None])
def test_a_fragment_has_its_place(index: int) -> None:
    """FR-069: calls are distinguished by index, an integer from 0."""
    with pytest.raises(ResponseValidationError, match="ToolCallDelta.index must be an integer from 0"):
        ToolCallDelta(index)

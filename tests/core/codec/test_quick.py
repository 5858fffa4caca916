"""What is as it is written is read the quick way, and as the kinds read it."""

from __future__ import annotations

from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk.codec import from_json, to_json
from crosswalk.codec.canonical import KINDS
from crosswalk.codec.layout import CANONICAL
from crosswalk.codec.problems import Problem
from crosswalk.codec.quick import quick_readers
from crosswalk.types import ChatResponse, FinishReason, ResponseDelta, ToolCallDelta
from crosswalk.types.json import load_json
from strategies import BY_TYPE, json_values, unfolded
from tries import tries


def quick(value: Any, cls: type) -> Any:
    """What the quick way makes of decoded JSON; ``None`` where it leaves that to the kinds."""
    try:
        return quick_readers[cls](value)
    except Exception:
        return None


@pytest.mark.sweep
@pytest.mark.parametrize("cls", sorted(CANONICAL, key=str))
@settings(max_examples=tries(20))
@given(data=st.data())
def test_both_ways_read_the_same(cls: type, data: st.DataObject) -> None:
    """Every value, its raw bytes included, in every field."""
    value = data.draw(BY_TYPE[cls])
    written = load_json(to_json(value, include_raw=True))
    read = quick(written, cls)
    if read is not None:
        assert unfolded(read) == unfolded(KINDS.of(cls).read(written))


@pytest.mark.sweep
@pytest.mark.parametrize("cls", sorted(CANONICAL, key=str))
@settings(max_examples=tries(20))
@given(data=st.data())
def test_the_quick_way_reads_nothing_that_the_kinds_refuse(cls: type, data: st.DataObject) -> None:
    """With any other value under any key, or without it."""
    written = load_json(to_json(data.draw(BY_TYPE[cls])))
    key = data.draw(st.sampled_from(sorted(written)) | st.sampled_from([f.name for f in attrs.fields(cls)]))
    if data.draw(st.booleans()):
        written.pop(key, None)
    else:
        written[key] = data.draw(
            json_values | st.sampled_from([None, "", 0, -1, 1.5, 2**70, [], {}, [None], "STOP"])
        )
    read = quick(written, cls)
    if read is None:
        return
    try:
        expected = KINDS.of(cls).read(written)
    except Problem as refusal:
        raise AssertionError(f"the kinds refuse {written}") from refusal
    assert unfolded(read) == unfolded(expected)


USUAL: dict[type, Any] = {
    ChatResponse: {
        "id": "r",
        "message": {"role": "assistant", "tool_calls": [{"id": "c", "name": "n", "arguments": "{}"}]},
        "finish_reason": "tool_calls",
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cached_tokens": 1},
        "metadata": {
            "provider_id": "p",
            "model_id": "m",
            "request_duration_seconds": 0.5,
            "tokens_per_second": 4.0,
            "extensions": {"a": [None]},
            "provenance": {"id": "synthetic"},
        },
        "created": "2024-01-15T10:30:00Z",
        "model": "m",
        "segments": [{"type": "tool_call", "content": "{}", "metadata": {"id": "c", "name": "n"}}],
        "logprobs": [{"token": "a", "logprob": -0.5, "bytes": [97], "top": [{"token": "b"}]}],
        "alternatives": [{"index": 1, "message": {"role": "assistant"}, "finish_reason": "stop"}],
        "attempts": [{"provider_name": "p", "model": "m", "latency_ms": 1.5, "outcome": "success"}],
        "content_filter_results": [{"category": "hate", "severity": "low", "filtered": False}],
        "format_version": "1.0",
    },
    ResponseDelta: {"index": 3, "content_delta": "a"},
    ToolCallDelta: {"index": 0, "id": "c", "name": "n", "arguments_delta": "{"},
}


@pytest.mark.parametrize("cls", USUAL)
def test_what_is_usual_is_read_the_quick_way(cls: type) -> None:
    """Or else nobody would see that it is not."""
    read = quick(USUAL[cls], cls)
    assert read is not None
    assert to_json(read) == orjson.dumps({key: USUAL[cls][key] for key in orjson.loads(to_json(read))})
    assert type(read) is cls
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        read.index = 7
    assert unfolded(read) == unfolded(from_json(orjson.dumps(USUAL[cls]), cls))


def test_a_list_is_read_item_by_item() -> None:
    """As a list or a tuple, whichever was asked for."""
    data = orjson.dumps([USUAL[ResponseDelta], {**USUAL[ResponseDelta], "index": 4, "finish_reason": "STOP"}])
    assert from_json(data, list[ResponseDelta]) == list(from_json(data, tuple[ResponseDelta, ...]))
    assert [delta.finish_reason for delta in from_json(data, list[ResponseDelta])] == [
        None,
        FinishReason.STOP,
    ]

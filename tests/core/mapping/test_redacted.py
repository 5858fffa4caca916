"""A secret that a server repeats appears nowhere in the results for its answer."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import MappingError, UnknownEventError, registry
from crosswalk.mapping import Reader, ReaderOptions
from wires import body, chunk


def reader(provider: str = "vllm") -> Reader:
    return Reader(
        registry.mapper(provider), ReaderOptions(redact=lambda text: text.replace("KEY", "<secret>"))
    )


def read(provider: str, *events: Any) -> tuple[list[Any], Any]:
    one = reader(provider)
    deltas = [delta for event in events for delta in one.read(b"data: " + orjson.dumps(event) + b"\n\n")]
    return [*deltas, *one.finish()], one.response()


def test_each_choice_ends_with_a_word_of_its_own() -> None:
    said = body({"content": "Hi"}, "stop")
    said["choices"].append({**said["choices"][0], "index": 1, "finish_reason": "length"})
    one = Reader(registry.mapper("vllm"), ReaderOptions(unknown="keep", redact=lambda text: "x" + text))
    deltas = [*one.read(orjson.dumps(said)), *one.finish()]
    (alternative,) = one.response().alternatives
    assert (one.response().raw_finish_reason, alternative.raw_finish_reason) == ("xstop", "xlength")
    assert [delta.raw_finish_reason for delta in deltas if delta.is_complete] == ["xlength", "xstop"]


def test_an_error_in_mid_stream() -> None:
    deltas, response = read(
        "vllm", chunk({"content": "Hi"}), {"error": {"message": "bad KEY", "code": "KEY"}}
    )
    assert "KEY" not in repr((deltas, response, response.error_info))
    assert response.error_info.message == "bad <secret>"


def test_an_event_that_nobody_knows() -> None:
    with pytest.raises(UnknownEventError) as raised:
        read("anthropic", {"type": "KEY"})
    assert raised.value.event_type == "<secret>"
    assert "KEY" not in f"{raised.value} {raised.value!r} {raised.value.args}"


def test_an_event_without_a_type() -> None:
    with pytest.raises(MappingError) as raised:
        read("anthropic", {"KEY": 1})
    assert "KEY" not in f"{raised.value} {raised.value!r}"

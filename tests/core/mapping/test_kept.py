"""Lists in the extensions that go on with each event, as token ids do: read by their likeness as if parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from alike import (
    VLLM,
    Stamped,
    made,
    same_as_parsed,
)
from crosswalk.plugin import hookimpl
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
)
from wires import chunk, ndjson, registry_of, sse


def ids(number: int, values: Any, *, index: int = 0, **more: Any) -> bytes:
    """A chunk of vLLM's with the ids of its tokens."""
    said = chunk({"content": f"w{number} "}, choice=index, **more)
    said["choices"][0]["token_ids"] = values
    return sse(said, done=False)


def test_a_list_that_grows_is_not_parsed(parsed: list[bytes]) -> None:
    frames = [ids(n, [n, n]) for n in range(40)]
    deltas, response, _, _ = same_as_parsed(frames, VLLM)
    assert deltas[30]["extensions"] == {"choices": [{"index": 0, "token_ids": [30, 30]}]}
    grown = response["metadata"]["extensions"]["choices"][0]["token_ids"]
    assert grown == [n for n in range(40) for _ in "ab"]
    parsed.clear()
    made(frames, VLLM)
    assert len(parsed) == 1


@pytest.mark.parametrize(
    "odd", [[], [-1], [1, -1], [True], [1.0], [10**20], ["1"], [[1]], None, 7, "7", {"a": 1}], ids=repr
)
def test_what_is_no_list_of_counts_is_kept_as_it_was_sent(odd: Any) -> None:
    """In the place of such a list, and where the list was to begin."""
    frames = [ids(n, [n]) for n in range(6)]
    one, other = (ids(n, "odd").replace(b'"odd"', json.dumps(odd).encode()) for n in (7, 8))
    same_as_parsed([*frames, one, *frames, sse(chunk({}, "stop"))], VLLM)
    same_as_parsed([one, other, *frames, one], VLLM)


def test_a_list_that_stands_elsewhere_in_the_extensions_is_not_gone_on_with() -> None:
    """Choices that have no number of their own, or one twice, are merged otherwise."""
    other = sse({"id": "chatcmpl-1", "choices": [{"delta": {}, "token_ids": [1], "x": 1}]}, done=False)
    twice = sse({"id": "chatcmpl-1", "choices": [{"index": 0, "x": 1}, {"index": 0, "y": 1}]}, done=False)
    beside = sse({"id": "chatcmpl-1", "choices": "none"}, done=False)
    for odd in (other, twice, beside):
        same_as_parsed([odd, *(ids(n, [n]) for n in range(6)), odd, *(ids(n, [n]) for n in range(6))], VLLM)


def test_several_choices_may_have_lists_that_grow() -> None:
    same_as_parsed([ids(n, [n], index=n % 2) for n in range(12)], VLLM)
    same_as_parsed([ids(n, [n], index=n // 4) for n in range(12)], VLLM)


class Listing(Stamped):
    """A provider whose events carry lists, which arrive in pieces or do not."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise more than the reader makes use of."""
        leaves, pieces = ("ids", "of[0].ids", "twice", "words", "at"), ("ids", "of[].ids", "twice", "words")
        return ProviderInfo(title="Listing", text_leaves=("said.text",), stamp_leaves=leaves, pieces=pieces)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What was left, and of some of it more."""
        if "twice" in event:
            event["twice"] = event["twice"] * 2
        left: dict[str, Any] = event
        return left


@pytest.mark.parametrize(
    ("beside", "parses"),
    [
        (lambda n: {"ids": [n]}, 1),
        (lambda n: {"of": [{"index": 3, "ids": [n]}]}, 1),
        (lambda n: {"of": [{"ids": [n]}]}, 8),  # which of them it is nobody knows
        (lambda n: {"ids": [n], "at": f"{n}"}, 8),
        (lambda n: {"twice": [n]}, 8),
        (lambda n: {"words": [f"{n}"]}, 8),
    ],
)
def test_one_list_that_is_left_as_it_was_sent_may_grow(parsed: list[bytes], beside: Any, parses: int) -> None:
    mapper = registry_of(listing=Listing()).mapper("listing")
    frames = [ndjson({"said": {"text": f"t{n}"}, **beside(n)}) for n in range(8)]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == parses

"""What changes with each event and stays in the extensions, token ids and timings say: read by their likeness as if parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from alike import (
    KEEPING,
    VLLM,
    Stamped,
    keeping,
    made,
    same_as_parsed,
)
from crosswalk.plugin.hookspecs import hookimpl
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


@pytest.mark.sweep
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
        (lambda n: {"of": [{"ids": [n]}]}, 8),  # which of them goes on nobody knows
        (lambda n: {"ids": [n], "at": f"{n}"}, 1),
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


# Objects of such, and what counts or weighs as well.


@pytest.mark.parametrize(
    ("beside", "parses"),
    [
        (lambda n: {"at": f"{n}", "by": n}, 1),
        (lambda n: {"at": n / 2, "by": [n]}, 8),  # of such a list nobody knows whether it goes on
        (lambda n: {"at": {"a": n, "b": {"c": f"x{n}", "d": n / 4}, "e": True, "f": []}, "by": None}, 1),
        (lambda n: {"of": {"words": [n], "more": [{"index": 2, "said": "x"}]}}, 1),
        (lambda n: {"words": ["a", "b"]}, 1),  # again, and again
        (lambda n: {"words": [{"index": 1, "word": "a"}]}, 1),
        (lambda n: {"timings": {"out": n, "ms": n / 2, "more": "x"}}, 1),
        (lambda n: {"timings": {"out": n, "cost": n / 2}}, 1),
        (lambda n: {"timings": {"out": n, "odd": -1}}, 1),
        (lambda n: {"timings": {"out": n, "odd": -n}}, 8),
        (lambda n: {"timings": {"out": n, "ms": n / 2, "longest": True}}, 8),
        (lambda n: {"token": {"logprob": -n / 8, "ids": [n, 5]}}, 1),
        (lambda n: {"token": {"logprob": -n / 8, "ids": n}}, 1),
        (lambda n: {"token": {"logprob": -n / 8, "ids": [n], "index": 1}}, 1),
        (lambda n: {"token": {"logprob": -n / 8, "ids": {"index": n}}}, 1),
        (lambda n: {"token": {"logprob": -n / 8, "index": n}}, 8),
        (lambda n: {"tokens": {"id": n}}, 8),  # it goes into a text
        (lambda n: {"tokens": {"id": [n]}}, 8),  # of bytes, or of any numbers?
        (lambda n: {"elsewhere": {"out": n}}, 8),
        (lambda n: {"at": "crosswalk-mark-1-", "by": n}, 8),  # what nobody else would say
        (lambda n: {"by": n, "note": "crosswalk-mark-"}, 8),
    ],
)
def test_what_stays_is_not_parsed(parsed: list[bytes], beside: Any, parses: int) -> None:
    frames = [keeping(n, **beside(n)) for n in range(8)]
    same_as_parsed([*frames, *frames], KEEPING)
    parsed.clear()
    made(frames, KEEPING)
    assert len(parsed) == parses


@pytest.mark.parametrize(
    "ms", [7, 0, -1.5, -0.0, 1e300, 10**14, 10**15, 2**63, 2**64, None, "1", True, [1.0], {}]
)
def test_a_number_stays_as_it_was_sent(ms: Any) -> None:
    """Whole or not; one that no template takes is read in the general way."""
    frames = [keeping(n, at={"ms": n / 2}, timings={"out": n, "ms": n / 2 + 1}) for n in range(6)]
    for odd in (
        {"at": {"ms": ms}, "timings": {"out": 9, "ms": 9.5}},
        {"at": {"ms": 9.5}, "timings": {"out": 9, "b": ms}},
    ):
        same_as_parsed([*frames, keeping(9, **odd), *frames], KEEPING)


def test_the_duration_is_that_of_the_event_before() -> None:
    """Also where it goes down, and in what is there in the middle."""
    frames = [keeping(n, timings={"out": n, "ms": 900.5 - n}) for n in range(8)]
    response = same_as_parsed(frames, KEEPING)[1]
    assert response["metadata"]["request_duration_seconds"] == pytest.approx(0.8935)


@pytest.mark.sweep
@pytest.mark.parametrize("other", ["x", 5, [1], None, {}, {"b": 1}, [{"index": 0, "a": 1}]], ids=repr)
def test_what_takes_the_place_of_an_object_is_not_added_to(other: Any) -> None:
    """Another kind of event comes between two of a kind, with something else in the place of an object or a list."""
    for beside in (
        lambda n: {"at": {"a": n}},
        lambda n: {"at": {"a": {"b": n}}},
        lambda n: {"token": {"logprob": -n / 8, "ids": [n]}},
    ):
        frames = [keeping(n, **beside(n)) for n in range(5)]
        for odd in (keeping(7, at=other), keeping(7, at={"a": other}), keeping(7, words=other)):
            same_as_parsed([odd, *frames, odd, odd, *frames], KEEPING)


def test_what_a_place_holds_besides_stays() -> None:
    """The templates of two kinds of events keep other things of one object."""
    frames = [keeping(n, at={"a": n} if n % 2 else {"b": n}) for n in range(12)]
    frames += [keeping(n, at={"a": n, "c": "x" if n % 3 else "y"}) for n in range(12)]
    same_as_parsed(frames, KEEPING)

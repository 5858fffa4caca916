"""What the promises of leaves do not cover is never taken for what they do: read as if parsed, learnt or not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from alike import (
    KEEPING,
    Stamped,
    keeping,
    made,
    same_as_parsed,
)
from crosswalk import registry
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    ResponseDelta,
    TokenLogprob,
    UsageInfo,
    accept_number,
    look_at_count,
    take_count,
    take_number,
    take_string,
)
from crosswalk.types.json import dump_json
from wires import chunk, registry_of, sse


class Told(Stamped):
    """A provider whose hooks a test gives; an event may say whose choice it is of."""

    leaves_hold = True

    def __init__(self, **hooks: Any) -> None:
        self.info = hooks.pop("info")
        self.hooks = hooks

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """What the test promises."""
        return ProviderInfo(title="Told", text_leaves=("said.text",), **self.info)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say the text, with the tokens that the test takes."""
        choice, text = event.pop("choice", 0), take_string(event["said"], "text")
        weigh = self.hooks.get("weigh")
        return [ResponseDelta(content_delta=text, logprobs=weigh and weigh(event, text), choice=choice)]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """What the test counts."""
        count = self.hooks.get("count")
        usage: UsageInfo | None = count(event, state) if count else None
        return usage

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What is left, and what the test makes of it."""
        self.hooks.get("leave", bool)(event)
        left: dict[str, Any] = event
        return left


def told(**hooks: Any) -> Mapper:
    """The mapper of such a provider."""
    return registry_of(told=Told(**hooks)).mapper("told")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"out": 1.5}, {"out": 7}),
        ({"out": -1}, {"out": 7}),
        ({"ms": 1.5}, {"out": 7, "ms": 1.5}),
        ({"ms": 1}, {"ms": 9}),
    ],
)
def test_counts_of_which_a_hook_makes_nothing_are_no_stamps(before: Any, after: Any) -> None:
    """In the next event it may make something of them."""
    for mapper, key in ((KEEPING, "timings"), (registry.mapper("llamacpp"), "timings")):
        names = {"out": "predicted_n", "ms": "predicted_ms"} if mapper is not KEEPING else {}

        def event(n: int, said: Any, key: str = key, names: Any = names, mapper: Any = mapper) -> bytes:
            timings = {names.get(name, name): value for name, value in said.items()}
            if mapper is KEEPING:
                return keeping(n, **{key: timings})
            return sse({**chunk({"content": f"t{n} "}), key: timings}, done=False)

        frames = [event(n, said) for said in (before, after) for n in range(6)]
        same_as_parsed([*frames, *frames], mapper)


def test_a_token_of_which_its_reader_makes_nothing_is_no_stamp() -> None:
    def weigh(event: Any, _: str | None) -> tuple[TokenLogprob, ...] | None:
        number = look_at_count(event["p"], "id")
        return None if number is None else (TokenLogprob("x", None),)

    mapper = told(info={"logprob_leaves": {"p": weigh}, "stamp_leaves": ("p.id",)}, weigh=weigh)
    same_as_parsed([keeping(n, p={"id": n / 2 if n < 5 else n}) for n in range(10)], mapper)


@pytest.mark.parametrize("texts", [("  ", " ", "abc", "abd"), ("abc", "abd", " ", "abe", "w" * 999, "abf")])
def test_what_a_reader_makes_of_a_blank_or_a_long_text_is_not_that_of_others(texts: Any) -> None:
    def weigh(event: Any, text: str | None) -> tuple[TokenLogprob, ...] | None:
        found = tuple(TokenLogprob(one, None) for one in event.pop("p")["of"])
        return found if (text or "").strip() and len(text or "") < 99 else None

    mapper = told(info={"logprob_leaves": {"p": weigh}}, weigh=weigh)
    frames = [dump_json({"said": {"text": text}, "p": {"of": ["a"]}}) + b"\n" for text in texts]
    same_as_parsed(frames, mapper)


def test_tokens_of_which_something_is_noted_are_read_by_their_reader(parsed: list[bytes]) -> None:
    def weigh(event: Any, _: str | None) -> tuple[TokenLogprob, ...] | None:
        said = event["p"]
        return (TokenLogprob(take_string(said, "t") or "", accept_number(said, "v")),)

    mapper = told(info={"logprob_leaves": {"p": weigh}}, weigh=weigh)
    frames = [keeping(n, p={"t": f"u{n}", "v": "odd"}) for n in range(8)]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == 8


def test_counts_and_numbers_stand_at_the_top(parsed: list[bytes]) -> None:
    def count(event: Any, state: MappingState) -> UsageInfo | None:
        return state.usage_info(3, take_count(event["said"], "out"))

    for info in ({"usage_leaves": ("said.out",)}, {"usage_leaves": ("out",), "number_leaves": ("said.n",)}):
        mapper = told(info=info, count=count if info == {"usage_leaves": ("said.out",)} else None)
        frames = [dump_json({"said": {"text": f"t{n} ", "out": n, "n": n}}) + b"\n" for n in range(8)]
        same_as_parsed(frames, mapper)
        parsed.clear()
        made(frames, mapper)
        assert len(parsed) == 8


def test_one_of_two_objects_of_counts_is_no_stamp_either() -> None:
    def count(event: Any, state: MappingState) -> UsageInfo | None:
        if "t" in event:
            state.request_duration = timedelta(milliseconds=event["t"]["ms"])
        return state.usage_info(3, take_count(event["u"], "out"))

    info = {"usage_leaves": ("u", "t"), "stamp_leaves": ("t",)}
    for ms in (lambda n: n + 0.5, lambda n: 9.5):
        same_as_parsed(
            [keeping(n, u={"out": n}, t={"ms": ms(n)}) for n in range(9)], told(info=info, count=count)
        )


def test_durations_that_are_added_up_are_the_right_ones() -> None:
    """Whatever order they come in, also in an answer after one in which all are nothing."""
    mapper = attrs.evolve(registry.mapper("llamacpp"))
    for scale in (0, 1):
        frames = []
        for n in range(1, 9):
            timings = {
                "cache_n": 0,
                "prompt_n": 4,
                "prompt_per_second": n + 0.1,
                "prompt_ms": 2.0 * n,
                "predicted_ms": 5.0 * n,
            }
            timings |= {"predicted_per_second": n + 7.5, "predicted_n": n}
            said = {name: scale * value for name, value in timings.items()}
            frames.append(sse({**chunk({"content": f"t{n} "}), "timings": said}, done=False))
        partial = same_as_parsed(frames, mapper)[1]
        assert partial["metadata"]["request_duration_seconds"] == pytest.approx(0.056 * scale)


@pytest.mark.parametrize(
    "tell",
    [
        lambda said, _: timedelta(microseconds=said["b"] / 1000),
        lambda said, _: timedelta(milliseconds=said["a"]) + timedelta(milliseconds=said["c"]),
        lambda said, _: timedelta(milliseconds=max(said["a"], said["c"])),
        lambda said, known: min(known or timedelta.max, timedelta(milliseconds=said["a"])),
        lambda said, known: max(known or timedelta.min, timedelta(milliseconds=said["a"])),
        lambda said, known: (known or timedelta()) + timedelta(milliseconds=said["a"]),
    ],
    ids=["rounded", "each rounded", "longer", "shortest", "longest", "sum"],
)
def test_a_duration_that_is_told_otherwise_is_not_taken_for_another(tell: Any) -> None:
    def count(event: Any, state: MappingState) -> UsageInfo | None:
        state.request_duration = tell(event["u"], state.request_duration)
        return state.usage_info(3, look_at_count(event["u"], "out"))

    mapper = told(info={"usage_leaves": ("u",), "stamp_leaves": ("u",)}, count=count)
    first = [keeping(0, u={"out": 1, "a": 1.5, "b": 1000, "c": 2.5})]
    frames = [
        keeping(n, u={"out": n, "a": 144.0315 - 9.1 * n, "b": 3900 + n, "c": 0.00045 + 11.3 * n})
        for n in range(14)
    ]
    same_as_parsed([*first, *frames], mapper)
    same_as_parsed([*frames, *first, *frames], mapper)


def in_turn(one: Any, other: Any) -> list[bytes]:
    """Events of one choice, with one of another among them."""
    return [
        *(keeping(n, choice=0, **one(n)) for n in range(3)),
        keeping(8, choice=1, **other),
        *(keeping(n, choice=0, **one(n)) for n in range(3)),
        keeping(9, choice=1, **other),
        *(keeping(n, choice=0, **one(n)) for n in range(3)),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda n: {"ids": [n]}, {"ids": 8}),
        (lambda n: {"l": [{"index": 0, "x": {"a": n}}]}, {"l": [{"index": 0, "x": 8}]}),
        (lambda n: {"l": [{"index": 0, "x": n}]}, {"l": [{"index": 1, "x": 8}]}),
        (lambda n: {"l": [{"index": 0, "x": n}]}, {"l": [{"index": 1.5}]}),
        (lambda n: {"u": {"out": n, "l": [n]}}, {"u": {"out": 1, "l": 8}}),
    ],
)
def test_what_another_event_has_put_in_the_place_of_a_list_or_an_object_stays(one: Any, other: Any) -> None:
    def count(event: Any, state: MappingState) -> UsageInfo | None:
        return state.usage_info(3, take_count(event["u"], "out")) if "u" in event else None

    info = {"usage_leaves": ("u",), "stamp_leaves": ("ids", "l[0].x", "u.l"), "pieces": ("ids", "u.l")}
    mapper = told(info=info, count=count)
    same_as_parsed(in_turn(one, other), mapper)
    same_as_parsed([keeping(n, **(one(n) if n % 4 else other)) for n in range(16)], mapper)


def test_what_a_reader_puts_elsewhere_is_kept_there(parsed: list[bytes]) -> None:
    """In the same object, as the documentation says."""

    def weigh(event: Any, text: str | None) -> tuple[TokenLogprob, ...] | None:
        said = event["p"]
        event["ids"] = said.pop("id")
        return (TokenLogprob(text or "", take_number(said, "v")),)

    for stamps in (("p.id",), ("p.id", "at")):
        mapper = told(info={"logprob_leaves": {"p": weigh}, "stamp_leaves": stamps}, weigh=weigh)
        frames = [
            keeping(n, p={"v": -n / 2, "id": n}, at=f"x{n}" if "at" in stamps else "x") for n in range(9)
        ]
        same_as_parsed(frames, mapper)
        parsed.clear()
        made(frames, mapper)
        assert len(parsed) == 1


@pytest.mark.parametrize("value", [lambda n: f"c{n}", lambda n: n, lambda n: n / 2, lambda n: [n]])
def test_a_stamp_that_is_put_elsewhere_as_well_is_none(value: Any) -> None:
    def leave(event: Any) -> None:
        event["copy"] = {"of": [event["at"]]}

    mapper = told(info={"stamp_leaves": ("at",), "pieces": ("at", "copy.of")}, leave=leave)
    same_as_parsed([keeping(n, at=value(n)) for n in range(9)], mapper)


def test_an_object_of_very_many_stamps_teaches_nothing(parsed: list[bytes]) -> None:
    """To find them takes as long as their number times the length of the event."""
    frames = [keeping(n, at={f"k{k}": n for k in range(100)}) for n in range(8)]
    same_as_parsed(frames, KEEPING)
    parsed.clear()
    made(frames, KEEPING)
    assert len(parsed) == 8


def test_one_bad_count_does_not_stop_the_learning(parsed: list[bytes]) -> None:
    frames = [keeping(n, timings={"out": n - 1, "ms": n / 2}) for n in range(9)]
    mapper = attrs.evolve(KEEPING)
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) <= 2

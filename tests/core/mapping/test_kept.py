"""What changes with each event and stays in the extensions, token ids and timings say: read by their likeness as if parsed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import attrs
import pytest

from alike import (
    VLLM,
    Stamped,
    made,
    same_as_parsed,
)
from crosswalk import registry
from crosswalk.plugin import Mapper, hookimpl
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


class Keeping(Stamped):
    """A provider of which most stays in the extensions; its counts say how long it took, its tokens come beside their text."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise all of it."""
        return ProviderInfo(
            title="Keeping",
            text_leaves=("said.text",),
            stamp_leaves=("at", "by", "timings", "of", "said.id", "token.ids", "tokens.id"),
            usage_leaves=("timings",),
            logprob_leaves={"token": self.token, "tokens": self.tokens},
            pieces=("token", "words", "of.words"),
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say the text, with its tokens."""
        text = take_string(event["said"], "text")
        found = self.token(event, text) if "token" in event else self.tokens(event, text)
        return [ResponseDelta(content_delta=text, logprobs=found)]

    def token(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """The text is the token; what is left becomes a list."""
        said = holder["token"]
        holder["token"] = [said]
        return (TokenLogprob(text or "", take_number(said, "logprob")),)

    def tokens(self, holder: dict[str, Any], _: str | None) -> tuple[TokenLogprob, ...] | None:
        """The number of the token says what it is, and stays, or its bytes."""
        said = holder.get("tokens", {}).get("id")
        if said is None:
            return None
        return (
            TokenLogprob("x", None, bytes(said)) if type(said) is list else TokenLogprob(f"{said}", None),
        )

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts, which stay, and the duration: that of the last event, or the longest."""
        timings = event.get("timings", event.get("elsewhere"))
        if type(timings) is not dict or type(timings.get("out")) is not int:
            return None
        duration = timedelta(milliseconds=timings.get("ms", 0))
        if "longest" in timings:
            duration = max(duration, state.request_duration or duration)
        state.request_duration = duration
        return state.usage_info(3, timings["out"])


KEEPING = registry_of(keeping=Keeping()).mapper("keeping")


def keeping(number: int, **more: Any) -> bytes:
    """An event with *more* beside its text."""
    return dump_json({"said": {"text": f"t{number} "}, **more}) + b"\n"


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


# What promises do not cover: none of it may be learnt, or not so.


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


def test_tokens_of_which_a_reader_makes_nothing_are_not_the_same_in_the_next() -> None:
    def weigh(event: Any, text: str | None) -> tuple[TokenLogprob, ...] | None:
        found = tuple(TokenLogprob(one, None) for one in event.pop("p")["of"])
        return found if (text or "").strip() else None

    mapper = told(info={"logprob_leaves": {"p": weigh}}, weigh=weigh)
    texts = ["  ", " ", "abc", "abd"]
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

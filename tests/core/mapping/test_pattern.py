"""What was learnt of one answer is used for the next, where that is surely the same."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from alike import FULL, OLLAMA, VLLM, full, made, same_as_parsed, texts
from crosswalk.mapping.learnt import learning
from crosswalk.mapping.learnt.pattern import Patterns
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.mapper import Mapper
from crosswalk.types.json import dump_json
from wires import chunk, line, ndjson, sse


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The events that something was learnt from without the help of another answer."""
    frames: list[bytes] = []
    gaps = learning.gaps_of

    def counted(frame: bytes, *given: Any) -> Any:
        frames.append(frame)
        return gaps(frame, *given)

    monkeypatch.setattr(learning, "gaps_of", counted)
    yield frames


def fresh(mapper: Mapper) -> Mapper:
    """The same provider, of which nothing has been learnt."""
    return attrs.evolve(mapper)


def answer(words: list[str], choices: int = 1, **about: Any) -> list[bytes]:
    """Events of a chat completion, with what it says of itself in each of them."""
    said = [chunk({"content": word}, choice=n % choices, **about) for n, word in enumerate(words)]
    ends = [chunk({}, "stop", choice=n, **about) for n in range(choices)]
    return [*(sse(one, done=False) for one in said), sse(*ends)]


WORDS = [f"{n} " for n in range(12)]


def test_what_an_answer_says_of_itself_may_be_another(learnt: list[bytes]) -> None:
    mapper = fresh(VLLM)
    for n in range(5):
        events = answer(WORDS, id=f"chatcmpl-{n}", created=1795000000 + n, model=f"m{n}")
        same_as_parsed(events, mapper)
    assert len(learnt) == 1


def test_what_stands_in_two_places_is_the_same_in_each_answer(learnt: list[bytes]) -> None:
    mapper = fresh(VLLM)
    for name in ("one", "one", "two"):
        same_as_parsed(answer(WORDS, id=name, model=name), mapper)
    assert len(learnt) == 2


@pytest.mark.parametrize("choices", [2, 8])
def test_of_each_choice_something_is_learnt_once(learnt: list[bytes], choices: int) -> None:
    mapper = fresh(VLLM)
    for n in range(3):
        same_as_parsed(answer(WORDS * 4, choices, id=f"chatcmpl-{n}"), mapper)
    assert len(learnt) == choices


@pytest.mark.sweep
@pytest.mark.parametrize(
    "events",
    [
        # Other keys, other types, another order, what a string holds, what is not all of a value.
        answer(WORDS, id="b", by="c"),
        answer(WORDS, id=7),
        answer(WORDS, id=None),
        answer(WORDS, created="1"),
        answer(WORDS, created=10**18),
        answer(WORDS, created=-1),
        answer(WORDS, id='","model":"x'),
        answer(WORDS, id='"},{"'),
        answer(WORDS, model="\\"),
        # What was said may be what stands elsewhere: a constant, a key, or what the answer says of itself.
        answer(["stop", "chat.completion.chunk", "content", "m", "index", *WORDS]),
        answer(["m1", "a1", *WORDS], id="a1", model="m1"),
        answer(["1", *WORDS], created=1),
        # There is none, or it ends at once.
        answer([]),
        answer(["", "", *WORDS]),
        [frame.replace(b'"content"', b'"reasoning"') for frame in answer(WORDS)],
        [frame.replace(b'"content":', b'"content": ') for frame in answer(WORDS)],
        [frame.replace(b'"index":0', b'"index":1') for frame in answer(WORDS)],
        [frame.replace(b'"finish_reason":null', b'"finish_reason":null,"finish_reason":null') for frame in answer(WORDS)],
    ],
)  # fmt: skip
def test_what_only_looks_like_another_answer_is_read_as_if_parsed(events: list[bytes]) -> None:
    mapper = fresh(VLLM)
    made(answer(WORDS, id="a", created=1, model="m"), mapper)
    same_as_parsed(events, mapper)
    same_as_parsed(answer(WORDS, id="a", created=1, model="m"), mapper)


@given(
    st.lists(
        st.tuples(
            st.lists(texts, min_size=1, max_size=6), texts, st.integers(-9, 10**16) | texts, st.integers(1, 2)
        ),
        min_size=2,
        max_size=3,
    )
)
def test_answers_one_after_the_other_are_read_as_if_parsed(
    answers: list[tuple[list[str], str, Any, int]],
) -> None:
    mapper = fresh(VLLM)
    for words, name, created, choices in answers:
        same_as_parsed(answer(words, choices, id=name, created=created), mapper)


def test_stamps_and_numbers_are_found_again(learnt: list[bytes]) -> None:
    numbered = fresh(FULL)
    for day in (1, 2):
        events = [{"n": n, "at": f"day {day}, {n}", "said": {"text": f"t{n}"}} for n in range(1, 9)]
        same_as_parsed([dump_json(event) + b"\n" for event in events], numbered)
    odd = [{"n": 40 + n, "at": f"at {n}", "said": {"text": f"t{n}"}} for n in range(9)]
    assert len(learnt) == 1
    same_as_parsed([dump_json(event) + b"\n" for event in odd], numbered)
    same_as_parsed([dump_json({"n": 1.0, "said": {"text": "t"}}) + b"\n"] * 3, numbered)
    same_as_parsed([dump_json({"n": 1.0, "at": "x", "said": {"text": "t"}}) + b"\n"] * 3, numbered)
    stamped = fresh(OLLAMA)
    learnt.clear()
    for day in (1, 2):
        same_as_parsed(
            [ndjson(line(f"{n} ", created_at=f"2026-01-0{day}T00:00:0{n}Z")) for n in range(9)], stamped
        )
    assert len(learnt) == 1


def test_what_comes_with_counts_is_learnt_once_for_all_answers(learnt: list[bytes]) -> None:
    """What the hook makes of them is proven for each answer all the same."""
    mapper = fresh(FULL)
    for n in range(3):
        same_as_parsed([dump_json(full(f"t{m}", m, at=f"{n}")) + b"\n" for m in range(6)], mapper)
    assert len(learnt) == 1


def test_what_an_answer_says_first_may_stand_elsewhere_in_it() -> None:
    """There it may have another meaning, which it loses with the next text."""

    def beside(words: list[str], about: str) -> list[bytes]:
        said = [chunk({"content": word}, id=about) for word in words]
        for one in said:
            one["choices"][0]["message"] = {"content": "said"}
        return [*(sse(one, done=False) for one in said), sse(chunk({}, "stop", id=about))]

    mapper = fresh(VLLM)
    for number, words in enumerate([WORDS, ["said", *WORDS], WORDS]):
        same_as_parsed(beside(words, f"{number}"), mapper)


def test_what_is_long_is_not_kept_for_other_answers() -> None:
    mapper = fresh(VLLM)
    for number in range(2):
        same_as_parsed(answer(WORDS, more=f"{number}" * 5000), mapper)
    assert not mapper.memory[Patterns]._known


def test_of_many_keys_few_are_tried() -> None:
    """Each takes time, and nobody says so much of himself."""
    mapper = fresh(VLLM)
    for number in range(2):
        same_as_parsed(answer(WORDS, **{f"key{n}": f"{number} {n}" for n in range(200)}), mapper)
    (pattern,) = next(iter(mapper.memory[Patterns]._known.values()))[:1]
    assert len(pattern.gaps) < 30


def test_where_no_answer_is_like_another_no_more_is_kept(learnt: list[bytes]) -> None:
    mapper = fresh(VLLM)
    for n in range(40):
        made(answer(WORDS, **{f"key{n}": n}), mapper)
    patterns = mapper.memory[Patterns]
    assert sum(map(len, patterns._known.values())) == 4
    learnt.clear()
    for n in range(20):  # even so those that are kept are of use
        made(answer(WORDS, **{f"key{number}": n for number in (15,)}), mapper)
    assert not learnt


def test_one_that_is_like_another_shows_that_it_is_worth_it(learnt: list[bytes]) -> None:
    mapper = fresh(VLLM)
    for n in range(40):
        made(answer(WORDS, **{f"key{n}": n}), mapper)
        if n % 10 == 0:
            made(answer(WORDS, **{f"key{n}": n + 1}), mapper)
    learnt.clear()
    made(answer(WORDS, key39=0), mapper)
    assert not learnt


@pytest.mark.sweep
def test_of_too_many_kinds_no_more_is_kept() -> None:
    mapper = fresh(VLLM)
    for n in range(300):
        made([b"event: e%d\n" % n + frame for frame in answer(WORDS[:3])], mapper)
    assert len(mapper.memory[Patterns]._known) == 256


def test_nothing_of_an_answer_is_kept_for_the_next() -> None:
    mapper = fresh(VLLM)
    reading = Reader(mapper, ReaderOptions())
    for frame in answer(["secret-" + word for word in WORDS]):
        list(reading.read(frame))
    gone = weakref.ref(reading)
    del reading
    gc.collect()
    assert gone() is None
    kept = list(itertools.chain.from_iterable(mapper.memory[Patterns]._known.values()))
    assert kept
    assert "secret" not in "".join(repr(pattern.literals) for pattern in kept)


def test_as_many_kinds_of_counts_as_there_are_are_read_as_if_parsed() -> None:
    """What is known of them is bounded, and what is forgotten is learnt anew."""
    mapper = fresh(VLLM)
    for n in (*range(70), 0, 69):
        counts = [{"prompt_tokens": 3, "completion_tokens": k, f"kind_{n}": k} for k in range(1, 5)]
        events = [
            sse({**chunk({"content": f"{k} "}), "usage": one}, done=False) for k, one in enumerate(counts)
        ]
        response = same_as_parsed([*events, sse(chunk({}, "stop"))], mapper)[1]
        assert response["usage"]["completion_tokens"] == 4

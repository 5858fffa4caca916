"""What is learnt is as much as pays, and as little is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any

import attrs
import pytest

from crosswalk import ChatResponse, MappingError, normalize, normalize_stream
from crosswalk.learning import OddError, learning
from crosswalk.mapping.bodies import shapes_of
from crosswalk.mapping.learnt import learning as learnt_learning
from crosswalk.mapping.learnt.pattern import Patterns
from crosswalk.mapping.learnt.template import Template
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import Registry
from crosswalk.shapes import Budget, Shape, Shapes
from crosswalk.types.response import now
from wires import chunk, sse

RESPONSE = normalize({"model": "m", "done": True, "done_reason": "stop", "response": "a"}, "ollama")


ALLOWS = Budget.allows  # before it is patched


@pytest.fixture(autouse=True)
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Budget, "allows", ALLOWS)
    yield
    learning.is_on = True


class Log:
    """Answers, each of a kind that has a number, and what of them is learnt."""

    def __init__(self, first: int = 100, most: int = 3, patience: int = 1000, teaches: bool = True) -> None:
        self.shapes: Shapes[Shape] = Shapes(cost=10, first=first, most=most, patience=patience)
        self.tried: list[int] = []
        self.teaches = teaches

    def read(self, *kinds: int) -> list[bool]:
        """Whether each of *kinds* was read by what was learnt."""
        return [self._read_one(kind) for kind in kinds]

    def _read_one(self, kind: int) -> bool:
        if self.shapes.read(kind) is not None:
            return True

        def learn(_: Sequence[Shape]) -> Shape | None:
            self.tried.append(kind)
            return Shape(lambda other: RESPONSE if other == kind else None) if self.teaches else None

        self.shapes.note(attrs.evolve(RESPONSE, raw_finish_reason=f"word {kind}"), learn)
        return False


# ------------------------------------------------------------------------------------------- what pays


def test_at_first_some_may_be_spent() -> None:
    budget = Budget(10)
    assert [budget.take(4) for _ in range(3)] == [True, True, False]
    assert budget.allows(2)
    assert budget.take(2)


def test_half_of_what_is_saved_may_be_spent_and_a_sixteenth_of_the_rest() -> None:
    budget = Budget(0)
    assert budget.take(0)
    budget = Budget(100)
    assert budget.take(100)
    budget.earn(159)
    assert not budget.take(10)
    budget.earn(1)
    assert budget.take(10)
    budget.earn(0, 19)
    assert not budget.take(10)
    budget.earn(0, 1)
    assert budget.take(10)


def test_what_was_saved_long_ago_is_forgotten() -> None:
    budget = Budget(10)
    budget.earn(10**6, 10**6)
    assert [budget.take(10) for _ in range(5)] == [True, True, True, True, False]


# ------------------------------------------------------------------------------------------- what is kept


def test_the_second_of_a_kind_is_learnt_from() -> None:
    log = Log()
    assert log.read(1, 2, 1, 1, 2, 2) == [False, False, False, True, False, True]


def test_what_cannot_be_learnt_is_tried_ever_more_seldom() -> None:
    log = Log(teaches=False)
    log.read(*[1] * 64)
    assert len(log.tried) == 6


def test_however_many_kinds_there_are_few_are_counted() -> None:
    """Then the counting starts anew."""
    log = Log()
    log.read(*range(257), 0)
    assert log.tried == []
    log.read(0)
    assert log.tried == [0]


def test_the_kinds_that_fitted_least_recently_are_forgotten() -> None:
    log = Log()
    log.read(1, 1, 2, 2, 3, 3, 1, 4, 4)
    assert log.read(1, 3, 4, 2) == [True, True, True, False]


def test_of_two_of_a_kind_the_latter_stays() -> None:
    shapes: Shapes[Shape] = Shapes(cost=1, first=10, most=3, patience=100)
    for answer in "aabb":
        shapes.note(
            attrs.evolve(RESPONSE, raw_finish_reason=answer),
            lambda _, answer=answer: Shape(  # type: ignore[misc]
                lambda other: RESPONSE if other == answer else None, kind="one"
            ),
        )
    assert (shapes.read("a"), shapes.read("b")) == (None, RESPONSE)


def test_what_fits_none_for_long_is_not_tried_any_more() -> None:
    """Trying takes its time. What has fitted since stays."""
    log = Log(patience=8)
    log.read(1, 1, 2, 2, *range(10, 14))  # with the eighth that none has fitted these are looked through
    assert log.read(1) == [True]
    log.read(*range(20, 28))
    assert log.read(1, 2) == [True, False]


@pytest.mark.sweep
def test_a_log_in_which_no_kind_pays_costs_a_sixteenth() -> None:
    """Each kind comes twice, and never again."""
    log = Log(first=4)
    log.read(*[kind for kind in range(3200) for _ in range(2)])
    assert len(log.tried) == 4 + 6400 // 16 // 10


def test_what_pays_is_learnt_again_and_again() -> None:
    """A kind that comes twenty times brings in what it has cost."""
    log = Log(first=4, patience=8)
    log.read(*[kind for kind in range(100) for _ in range(24)])
    assert log.tried == [*range(100)]


def test_an_error_that_is_another_matter_passes() -> None:
    shapes: Shapes[Shape] = Shapes(cost=1, first=1, most=1, patience=9)
    raised: list[Exception] = [ValueError(), OddError(str, now)]

    def read() -> ChatResponse:
        raise raised.pop(0)

    for _ in range(2):
        shapes.note(RESPONSE, lambda _: Shape(read))
    assert shapes.read() is None
    with pytest.raises(OddError):
        shapes.read()


@pytest.mark.sweep
def test_of_streams_that_never_repeat_themselves_little_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event has another id: at first some are learnt from, then one of a hundred; and one that goes on brings it in."""
    known, learnt = Registry(), list[Any]()
    make = learnt_learning._template

    def counted(*given: Any) -> Template | None:
        learnt.append(given)
        return make(*given)

    monkeypatch.setattr(learnt_learning, "_template", counted)

    def read(ids: Iterable[str]) -> int:
        learnt.clear()
        frames = [sse({**chunk({"content": "so"}), "id": one}, done=False) for one in ids]
        last = sse({**chunk({}, "stop"), "id": "a"})
        answer = normalize_stream([*frames, last], "vllm", registry=known, unknown="keep")
        with suppress(MappingError):  # it is the ids of several answers
            answer.until_done()
        return len(learnt)

    others = (f"id {number}" for number in count())
    assert read(islice(others, 2000)) > 50
    assert read(islice(others, 2000)) < 25
    read(["a"] * 2000)
    assert read(islice(others, 2000)) > 50


def test_what_cannot_be_learnt_costs_no_other_kind_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a thousand fragments that say no more than the last a text is learnt from at once."""
    parsed: list[bytes] = []
    load = Reader._load

    def counted(self: Reader, data: bytes) -> Any:
        parsed.append(data)
        return load(self, data)

    monkeypatch.setattr(Reader, "_load", counted)
    known = Registry()

    def read(*parts: dict[str, Any]) -> int:
        parsed.clear()
        frames = [sse(chunk(part), done=False) for part in parts]
        normalize_stream([*frames, sse(chunk({}, "stop"))], "vllm", registry=known).until_done()
        return len(parsed)

    odd = [{"reasoning": f"a{n}", f"key{n}": n} for n in range(1000)]
    assert read(*odd) > 900
    assert read(*[{"content": f"a{n}"} for n in range(1000)]) < 10


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The events that the reader wanted to learn from."""
    frames: list[bytes] = []
    learn = learnt_learning.learn

    def counted(frame: bytes, *given: Any, **more: Any) -> Any:
        frames.append(frame)
        return learn(frame, *given, **more)

    monkeypatch.setattr(learnt_learning, "learn", counted)
    return frames


def frames_of(*deltas: dict[str, Any]) -> list[bytes]:
    return [*(sse(chunk(delta), done=False) for delta in deltas), sse(chunk({}, "stop"))]


@pytest.mark.sweep
@pytest.mark.parametrize("size", [1, 20])
def test_a_stream_that_says_nothing_to_learn_from_is_left_alone_for_a_while(
    asked: list[bytes], size: int
) -> None:
    """Else each event would cost what it takes to find that out. Texts that come later are learnt from, if not at once."""
    others = [{"content": None, "annotations": [n]} for n in range(1000)]
    frames = frames_of(*others, *[{"content": f"a{n}"} for n in range(1000)])
    chunks = [b"".join(frames[n : n + size]) for n in range(0, len(frames), size)]
    known = Registry()
    response = normalize_stream(chunks, "vllm", registry=known).until_done()
    assert response.text == "".join(f"a{n}" for n in range(1000))
    assert len(asked) < 40
    asked.clear()
    normalize_stream(
        frames_of(*[{"content": f"a{n}"} for n in range(1000)]), "vllm", registry=known
    ).until_done()
    assert len(asked) < 5


def test_what_would_cost_more_than_it_saved_is_not_asked_for_each_time(
    asked: list[bytes],
) -> None:
    """Short answers, say: of each one event is looked at, or none. A long one pays for itself in the end."""
    mapper = Registry().mapper("vllm")
    mapper.memory[Patterns] = Patterns(36)

    def read(count: int) -> str | None:
        reader = Reader(mapper)
        deltas = [
            delta
            for frame in frames_of(*[{"content": f"a{n}"} for n in range(count)])
            for delta in reader.read(frame)
        ]
        deltas += reader.finish()
        return reader.response().text

    for _ in range(20):
        assert read(5) == "a0a1a2a3a4"
    assert len(asked) < 30
    asked.clear()
    assert read(5000) == "".join(f"a{n}" for n in range(5000))
    assert len(asked) < 40, "and then all that is left of it by what was learnt"


def test_a_plugin_that_promises_nothing_is_never_learnt_from(asked: list[bytes]) -> None:
    mapper = Registry().mapper("vllm")
    silent = attrs.evolve(mapper, info=attrs.evolve(mapper.info, text_leaves=(), speaks=()))
    reader = Reader(silent)
    for frame in frames_of(*[{"content": f"a{n}"} for n in range(50)]):
        list(reader.read(frame))
    assert not asked


# ------------------------------------------------------------------------------------------- the switch


def test_who_wants_to_learns_nothing() -> None:
    """Nor is what is known used, until it is on again: of bodies and streams."""
    known, text = Registry(), '{"model":"m","done":true,"done_reason":"stop","response":"a"}'
    body = text.encode()

    def is_known() -> bool:
        shapes = shapes_of(known.mapper("ollama"))
        return shapes.read(body, lambda: "i", lambda: RESPONSE.created, True) is not None

    def read() -> None:
        for _ in range(3):
            normalize(body, "ollama", registry=known)

    learning.is_on = False
    read()
    learning.is_on = True
    assert not is_known()
    read()
    assert is_known()
    learning.is_on = False
    assert not is_known()
    learning.is_on = True
    assert is_known()


@pytest.mark.parametrize("is_on", [True, False])
def test_a_stream_asks_when_it_begins(is_on: bool) -> None:
    """It learns to its end, or nothing."""
    known = Registry()
    learning.is_on = is_on
    frames = [sse(chunk({"content": "a"}), done=False)] * 3
    stream = normalize_stream([*frames, sse(chunk({}, "stop"))], "vllm", registry=known)
    learning.is_on = not is_on
    list(stream)
    assert (Patterns in known.mapper("vllm").memory) is is_on

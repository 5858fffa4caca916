"""Events that are equal, or nearly: each is read, counted and kept as if it were the only one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import attrs
import pytest

from crosswalk import (
    ChatResponse,
    LineTooLongError,
    NestingTooDeepError,
    Registry,
    ResponseDelta,
    StreamTooLargeError,
    TooManyEventsError,
    normalize_stream,
)
from crosswalk.plugins import MappingState, hookimpl
from crosswalk.wire import Limits
from crosswalk_vllm import plugin as vllm
from wires import chunk, registry_of, sse

COUNT = 100
TEXT = chunk({"content": "ha"})
END = chunk({}, "stop")
STREAM = sse(*[TEXT] * COUNT, END)


def live(data: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in data.split(b"\n\n")[:-1]]


def at_once(data: bytes) -> list[bytes]:
    return [data]


def in_pieces(data: bytes) -> list[bytes]:
    return [data[at : at + 97] for at in range(0, len(data), 97)]


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


cuts = pytest.mark.parametrize("cut", [live, at_once, in_pieces, byte_by_byte])
Cut = Callable[[bytes], list[bytes]]


def read(
    data: bytes, cut: Cut = live, *, registry: Registry | None = None, limits: Limits | None = None
) -> tuple[list[ResponseDelta], ChatResponse]:
    """The deltas and the response of *data*, cut in that way."""
    known = registry_of(vllm=vllm) if registry is None else registry
    stream = normalize_stream(cut(data), "vllm", registry=known, limits=limits or Limits())
    deltas = list(stream)
    return deltas, stream.response


def extensions(*events: Any) -> Any:
    """The extensions of the answer that *events* give, live."""
    return read(sse(*events, END))[1].metadata.extensions


# -------------------------------------------------------------------------------------- every hook is asked


class Shouting:
    """Wraps a mapping: counts the events, and changes the text of each delta."""

    def __init__(self) -> None:
        self.events = 0

    @hookimpl(wrapper=True)
    def map_delta(
        self, event: Any, state: MappingState
    ) -> Generator[None, list[ResponseDelta], list[ResponseDelta]]:
        """Number each text."""
        self.events += 1
        deltas = yield
        return [
            attrs.evolve(delta, content_delta=f"{self.events} ") if delta.content_delta else delta
            for delta in deltas
        ]


@cuts
def test_a_wrapper_gets_every_event_and_may_change_each(cut: Cut) -> None:
    wrapper = Shouting()
    known = registry_of(vllm=vllm)
    known.register(wrapper, "vllm")
    deltas, response = read(STREAM, cut, registry=known)
    assert wrapper.events == COUNT + 1
    assert response.text == "".join(f"{number} " for number in range(1, COUNT + 1))
    assert "".join(delta.content_delta or "" for delta in deltas) == response.text


class CountsEvents(type(vllm)):  # type: ignore[misc]
    """A dialect of a stranger's that overrides how an event is read, and declares nothing."""

    events = 0

    def map_delta(self, event: Any, state: MappingState) -> Any:
        """Count each event."""
        self.events += 1
        event["number"] = self.events
        return super().map_delta(event, state)


class CountsChoices(type(vllm)):  # type: ignore[misc]
    """The same with the method that reads a choice."""

    events = 0

    def choice_deltas(self, *arguments: Any, **options: Any) -> Any:
        """Count each choice."""
        self.events += 1
        return super().choice_deltas(*arguments, **options)


@pytest.mark.untraced
@pytest.mark.parametrize("dialect", [CountsEvents, CountsChoices])
@cuts
def test_a_subclass_that_overrides_a_reading_method_gets_every_event(dialect: Any, cut: Cut) -> None:
    plugin = dialect()
    deltas, response = read(STREAM, cut, registry=registry_of(vllm=plugin))
    assert plugin.events == COUNT + 1
    assert response.text == "ha" * COUNT
    assert response.metadata.extensions.get("number") == (COUNT + 1 if dialect is CountsEvents else None)
    assert len([delta for delta in deltas if delta.content_delta]) == COUNT


# ------------------------------------------------------------------------------------------- limits


LONGEST = max(len(line) for line in STREAM.split(b"\n"))


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("name", "size", "error"),
    [
        ("events", COUNT + 1, TooManyEventsError),
        ("line_bytes", LONGEST, LineTooLongError),
        ("total_bytes", len(STREAM), StreamTooLargeError),
        ("depth", 4, NestingTooDeepError),  # the event, choices, a choice, its delta
    ],
)
@cuts
def test_equal_events_keep_to_every_limit(name: str, size: int, error: type[Exception], cut: Cut) -> None:
    """The limit itself is allowed, one less is not."""
    assert read(STREAM, cut, limits=Limits(**{name: size}))[1].text == "ha" * COUNT
    with pytest.raises(error):
        read(STREAM, cut, limits=Limits(**{name: size - 1}))


@cuts
def test_the_events_within_the_limit_are_delivered(cut: Cut) -> None:
    stream = normalize_stream(cut(STREAM), "vllm", registry=registry_of(vllm=vllm), limits=Limits(events=50))
    deltas = []
    with pytest.raises(TooManyEventsError) as caught:
        for delta in stream:
            deltas.append(delta)
    partial = caught.value.partial
    assert partial is not None
    assert partial.text == "ha" * 50
    assert "".join(delta.content_delta or "" for delta in deltas) == "ha" * 50


# --------------------------------------------------------------------------------------- after the end


@cuts
def test_an_equal_event_after_the_finish_word_belongs_to_the_answer(cut: Cut) -> None:
    """A finish word is provisional: servers send white space after it, or say it after each call."""
    deltas, response = read(sse(*[TEXT] * 3, END, TEXT, TEXT), cut)
    assert response.text == "ha" * 5
    assert [delta.finish_reason is not None for delta in deltas] == [False] * 5 + [True]


# ------------------------------------------------------------------------------------- nearly equal events


@cuts
def test_values_that_are_equal_in_python_are_not_one(cut: Cut) -> None:
    """1, 1.0 and true in turn at one path: each that comes anew is news, and the last one stays."""
    values = [1, 1.0, True, 1, 1, True, 1.0, 0, False, 0.0]
    events = [chunk({"content": "ha"}, x=value) for value in values]
    deltas, response = read(sse(*events, END), cut)
    shown = [delta.extensions.get("x") for delta in deltas if delta.content_delta]
    expected = [1, 1.0, True, 1, None, True, 1.0, 0, False, 0.0]
    assert list(map(repr, shown)) == list(map(repr, expected))
    assert repr(response.metadata.extensions["x"]) == "0.0"
    assert response.text == "ha" * len(values)


def with_list(*values: Any) -> list[Any]:
    return [chunk({"content": "ha"}, marks=value) for value in values]


def test_a_list_that_each_event_repeats_is_kept_once() -> None:
    assert extensions(*with_list([7], [7], [7]))["marks"] == (7,)


@pytest.mark.parametrize(
    ("lists", "kept"),
    [
        ([[7], [8], [8]], (7, 8, 8)),
        ([[7], [7], [8]], (7, 7, 8)),
        ([[1], [2], [1], [2]], (1, 2, 1, 2)),
        ([["a"], ["a"], ["b"], ["b"]], ("a", "a", "b", "b")),
        ([[1], [1.0], [True]], (1, 1.0, True)),
    ],
)
def test_every_piece_of_a_list_counts_as_soon_as_one_differs(lists: Any, kept: Any) -> None:
    assert repr(extensions(*with_list(*lists))["marks"]) == repr(kept)


def in_delta(*plans: Any, **more: Any) -> list[Any]:
    return [chunk({"content": "ha", "plan": plan, **more}) for plan in plans]


@pytest.mark.parametrize("plans", [["ha", "ha"], ["ha", "ho"], ["ha", "ha", "ha", "!"], ["ha", None, "ha"]])
def test_unknown_text_in_a_delta_is_joined(plans: list[str | None]) -> None:
    (choice,) = extensions(*in_delta(*plans))["choices"]
    assert choice["delta"]["plan"] == "".join(plan or "" for plan in plans)


def test_unknown_text_outside_of_a_delta_is_the_last_one() -> None:
    events = [chunk({"content": "ha"}, tier=tier) for tier in ("a", "a", "b", "b")]
    assert extensions(*events)["tier"] == "b"

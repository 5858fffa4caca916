"""RawEvents: the provider's bytes, decoded when looked at."""

from __future__ import annotations

import pickle

import pytest

from crosswalk.types import RawEvents

EVENTS = RawEvents([b'{"a": 1}', b"[DONE]", b"\xff"])


def test_events_are_decoded_one_by_one() -> None:
    """Design, section 4: JSON as JSON, everything else as text."""
    assert EVENTS[0] == {"a": 1}
    assert EVENTS[1] == "[DONE]"
    assert EVENTS[2] == "\ufffd"
    assert list(EVENTS) == [{"a": 1}, "[DONE]", "\ufffd"]
    assert EVENTS.frames == (b'{"a": 1}', b"[DONE]", b"\xff")


def test_raw_events_are_a_sequence() -> None:
    """Length, slices, negative indexes, membership. An index too high is an ``IndexError``."""
    assert (len(EVENTS), EVENTS[-1], "[DONE]" in EVENTS) == (3, "\ufffd", True)
    assert EVENTS[1:] == RawEvents([b"[DONE]", b"\xff"])
    assert not RawEvents()
    with pytest.raises(IndexError):
        EVENTS[3]


def test_what_one_decodes_one_may_change() -> None:
    """Each look decodes anew: what one does to it does not show."""
    EVENTS[0]["a"] = 2
    assert EVENTS[0] == {"a": 1}


def test_equality_is_on_the_bytes() -> None:
    """Equal JSON in other bytes is another event."""
    again = pickle.loads(pickle.dumps(EVENTS))
    assert again == EVENTS
    assert hash(again) == hash(EVENTS)
    assert RawEvents([b"{}"]) != RawEvents([b"{ }"])
    assert RawEvents([b"{}"]) != (b"{}",)


def test_the_repr_shows_no_content() -> None:
    """NFR-020."""
    assert repr(EVENTS) == "RawEvents(3 events)"

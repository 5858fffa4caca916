"""Checks of a framing of the provider's own, which the test class can write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crosswalk.errors import FramingError
from crosswalk.testing.captures import written
from crosswalk.testing.case import Case, occurrences
from crosswalk.testing.problems import Problem

__all__ = ["own_framing_is_exact"]

_TOKEN: Final = "crosswalk7token"
_LARGE: Final = "Kelp " * 30_000
"""More than two bytes can count."""
_BROKEN: Final = b"Ke\xff\xc3Lp"
"""Bytes that are not UTF-8."""


def own_framing_is_exact(case: Case) -> Iterator[Problem]:
    """P3: every byte of a frame counts; bytes behind the last frame, half a frame and invalid UTF-8 are errors."""
    yield from _invalid_text(case)
    if not case.has_own_framing or case.write is None or case.baseline.error is not None:
        return
    body = case.capture.body
    whole = case.map_bytes(body)
    if not whole.is_like(case.baseline):
        yield case.problem(
            "P3", "write", "the frames that it writes are read differently from the recorded ones"
        )
        return
    frame = case.write(*case.frames[0])
    for name, rest in (
        ("bytes that are not a frame", b"\x00crosswalk" * 4),
        ("half a frame", frame[: len(frame) // 2]),
    ):
        if case.map_bytes(body + rest).error is None:
            yield case.problem("P3", "the end", f"{name} behind the answer are passed over")
    for place in case.places(str):
        if isinstance(case.marked(place).cause, FramingError):
            yield case.problem(
                "P3", place, f"a frame with another text is refused: {case.marked(place).error}"
            )
            break
    for place in case.places(str):
        if case.marked(place).error is None and occurrences(case.marked(place).response):
            after = case.map(place.put(case.events, _LARGE))
            if after.error is not None:
                yield case.problem("P3", place, f"a frame of {len(_LARGE)} bytes is refused: {after.error}")
            break
    numbers = case.some(list(range(len(body))), None if case.sample is None else 4 * case.sample)
    for number in numbers:
        changed = bytearray(body)
        changed[number] ^= 0x01
        if case.map_bytes(bytes(changed)).is_like(whole):
            yield case.problem("P3", f"byte {number}", "another byte changes nothing")
            break


def _invalid_text(case: Case) -> Iterator[Problem]:
    """Bytes that are not UTF-8 in the place of a text give an error, or show as U+FFFD."""
    if not case.is_answer:
        return
    texts = case.mapper.info.text_events
    single = [place for place in case.places(str) if len(place.leaves) == 1]
    in_json = [place for place in single if case.frames[place.leaves[0].event][1] not in texts]
    for place in case.some(in_json, 3):
        events = place.put(case.events, _TOKEN)
        frames = [
            (data if event is old else written(event).replace(_TOKEN.encode(), _BROKEN), name)
            for event, old, (data, name) in zip(events, case.events, case.frames, strict=True)
        ]
        body = case.reframed(frames, events)(events).replace(_TOKEN.encode(), _BROKEN)
        after = case.map_bytes(body)
        is_accepted = after.error is None and after.response["finish_reason"] != "error"
        if is_accepted and not occurrences(after.response, "\ufffd"):
            yield case.problem("P4", place, "bytes in it that are not UTF-8 are dropped")

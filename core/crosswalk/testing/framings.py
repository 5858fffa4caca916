"""Checks of framing: cuts, line ends, repeated events, and a provider's own framing, which the test class can write."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from crosswalk.codec import to_jsonable
from crosswalk.errors import CrosswalkError, FramingError
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture, written
from crosswalk.testing.case import MARKER, Case, occurrences, reader_options
from crosswalk.testing.perturbation import (
    MISSING,
    Leaf,
    at,
    outcome,
    replaced,
)
from crosswalk.testing.problems import Problem
from crosswalk.types.delta import ResponseDelta


def _shown(mapper: Mapper, capture: Capture, chunks: Iterable[bytes]) -> Any:
    """Return the result of *chunks*, in a form that can be compared."""
    reader = Reader(mapper, reader_options(capture))
    deltas: list[ResponseDelta] = []
    try:
        for chunk in chunks:
            deltas.extend(reader.read(chunk))
        deltas.extend(reader.finish())
        return to_jsonable(deltas), to_jsonable(reader.response())
    except CrosswalkError as error:
        return to_jsonable(deltas), f"{type(error).__name__}: {error}"


def framing_does_not_matter(case: Case) -> Iterator[Problem]:
    """P3: any cut of the bytes, any line ending, comments and keep-alives give the same deltas."""
    body, mapper, capture = case.capture.body, case.mapper, case.capture
    whole = _shown(mapper, capture, [body])
    rng = random.Random(capture.case)
    for number in range(4):
        cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(1, 12)))
        chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        case.tally.mappings += 1
        if _shown(mapper, capture, chunks) != whole:
            yield case.problem("P3", f"cuts {number}", f"cut at {cuts} it is read differently")
    if len(body) <= 20_000:
        case.tally.mappings += 1
        if _shown(mapper, capture, [body[i : i + 1] for i in range(len(body))]) != whole:
            yield case.problem("P3", "single bytes", "byte by byte it is read differently")
    for name, variant in () if case.has_own_framing else _reframed(capture):
        case.tally.mappings += 1
        if _shown(mapper, capture, [variant]) != whole:
            yield case.problem("P3", name, "framed so, it is read differently")
    if case.events and capture.status < 400 and not any(name for _, name in case.frames):
        one_by_one = outcome(mapper, case.events, options=reader_options(capture))
        if one_by_one.error is None and (one_by_one.deltas, one_by_one.response) != whole:
            yield case.problem("P3", "events", "parsed event by event it is read differently")


def _reframed(capture: Capture) -> Iterator[tuple[str, bytes]]:
    if capture.status >= 400 or not capture.stream or b"\r" in capture.body:
        return
    body = capture.body
    if body.lstrip().startswith(b"{"):
        yield "crlf", body.replace(b"\n", b"\r\n")
        yield "blank lines", body.replace(b"\n", b"\n\n")
        yield "no last newline", body.rstrip(b"\n")
    else:
        yield "crlf", body.replace(b"\n", b"\r\n")
        yield "cr", body.replace(b"\n", b"\r")
        yield "comments", body.replace(b"\n\n", b"\n\n: keep-alive\n\n")
        yield "byte order mark", b"\xef\xbb\xbf" + body


_TEXTS: Final = ("a", " ", "\n", "0", "{", "<think>", "<|im_end|>", MARKER)
_SEVERAL: Final = 8
"""The number of kinds of events of one capture that are told apart by their texts."""


def text_paths_hold(case: Case) -> Iterator[Problem]:
    """P3: an event that repeats another one except for the values that ``ProviderInfo`` declares has the same meaning.

    The reader trusts the plugin in this and maps no such event. Here the hooks map each one as well, and both ways must
    agree.
    """
    info, capture = case.mapper.info, case.capture
    keys = [(key,) for key in (info.timestamp_key, info.number_key, info.usage_key) if key is not None]
    if not case.is_answer or len(case.frames) < 2:
        return
    requested = attrs.evolve(case.mapper, is_unmodified=False)
    for leaf in _some_texts(case):
        data, name = case.frames[leaf.event]
        more: list[Any] = []
        for number, text in enumerate((*_TEXTS, leaf.value), start=1):
            (event,) = replaced([case.events[leaf.event]], attrs.evolve(leaf, event=0), text)
            for path in (*keys, *info.logprob_paths):
                value = at(event, path)
                if value is not MISSING:
                    (event,) = replaced([event], Leaf(0, path, value), _varied(value, number))
            more.append(event)
        behind = leaf.event + 1
        events = [*case.events[:behind], *more, *case.events[behind:]]
        frames = [(data, name), *((written(event), name) for event in more)]
        frames = [*case.frames[: leaf.event], *frames, *case.frames[behind:]]
        chunks = [case.reframed(frames, events)(events)]
        case.tally.mappings += 2
        if _shown(case.mapper, capture, chunks) != _shown(requested, capture, chunks):
            yield case.problem(
                "P3", leaf, "an event with another text here is not read as its text_paths promise"
            )


def _varied(value: Any, number: int) -> Any:
    """Return a value similar to *value*, with other words, numbers and counts for each *number*."""
    if isinstance(value, dict):
        return {key: _varied(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_varied(item, number) for item in value]
    if isinstance(value, str):
        return f"{value}{number}"
    return value if value is None or isinstance(value, bool) else value + number


def _some_texts(case: Case) -> list[Leaf]:
    """Return leaves that hold promised texts: one for events that differ only in their text."""
    paths = set(case.mapper.info.text_paths)
    kinds: dict[tuple[bytes, str | None], Leaf] = {}
    for leaf in case.leaves:
        if leaf.path in paths and isinstance(leaf.value, str) and leaf.value:
            (event,) = replaced([case.events[leaf.event]], attrs.evolve(leaf, event=0), "")
            kinds.setdefault((written(event), case.frames[leaf.event][1]), leaf)
    return case.some([*kinds.values()], None if case.sample is None else _SEVERAL)


_TOKEN: Final = "crosswalk7token"
_LARGE: Final = "Kelp " * 30_000
"""More bytes than two bytes can count."""
_BROKEN: Final = b"Ke\xff\xc3Lp"
"""Bytes that are not UTF-8."""


def own_framing_is_exact(case: Case) -> Iterator[Problem]:
    """P3: every byte of a frame counts. Bytes after the last frame, half a frame and invalid UTF-8 are errors."""
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
    for name, remainder in (
        ("bytes that are not a frame", b"\x00crosswalk" * 4),
        ("half a frame", frame[: len(frame) // 2]),
    ):
        if case.map_bytes(body + remainder).error is None:
            yield case.problem("P3", "the end", f"{name} behind the answer are passed over")
    for location in case.places(str):
        if isinstance(case.marked(location).cause, FramingError):
            yield case.problem(
                "P3", location, f"a frame with another text is refused: {case.marked(location).error}"
            )
            break
    for location in case.places(str):
        if case.marked(location).error is None and occurrences(case.marked(location).response):
            after = case.map(location.put(case.events, _LARGE))
            if after.error is not None:
                yield case.problem(
                    "P3", location, f"a frame of {len(_LARGE)} bytes is refused: {after.error}"
                )
            break
    numbers = case.some(list(range(len(body))), None if case.sample is None else 4 * case.sample)
    for number in numbers:
        changed = bytearray(body)
        changed[number] ^= 0x01
        if case.map_bytes(bytes(changed)).is_like(whole):
            yield case.problem("P3", f"byte {number}", "another byte changes nothing")
            break


def _invalid_text(case: Case) -> Iterator[Problem]:
    """Bytes that are not UTF-8 in place of a text give an error, or show as U+FFFD."""
    if not case.is_answer:
        return
    texts = case.mapper.info.text_events
    single = [location for location in case.places(str) if len(location.leaves) == 1]
    in_json = [location for location in single if case.frames[location.leaves[0].event][1] not in texts]
    for location in case.some(in_json, 3):
        events = location.put(case.events, _TOKEN)
        frames = [
            (data if event is old else written(event).replace(_TOKEN.encode(), _BROKEN), name)
            for event, old, (data, name) in zip(events, case.events, case.frames, strict=True)
        ]
        body = case.reframed(frames, events)(events).replace(_TOKEN.encode(), _BROKEN)
        after = case.map_bytes(body)
        is_accepted = after.error is None and after.response["finish_reason"] != "error"
        if is_accepted and not occurrences(after.response, "\ufffd"):
            yield case.problem("P4", location, "bytes in it that are not UTF-8 are dropped")

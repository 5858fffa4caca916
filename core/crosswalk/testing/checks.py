"""The promises P1 to P5 and P8, as functions that check one capture and report what is broken.

``ProviderConformance`` asserts that they report nothing; ``crosswalk check`` prints what they report.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import attrs
import orjson

from crosswalk.codec import from_json, to_json, to_jsonable
from crosswalk.errors import CrosswalkError, MappingError
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.mapper import Mapper
from crosswalk.testing.answers import (
    errors_show,
    failures_are_errors,
    null_erases_nothing,
    one_answer_at_a_time,
    output_shows,
    recognizes_its_own,
)
from crosswalk.testing.captures import Capture, Write, written
from crosswalk.testing.case import MARKER, Case, Tally, reader_options, typed
from crosswalk.testing.deltas import delta_lines
from crosswalk.testing.framings import own_framing_is_exact
from crosswalk.testing.mistaken import coerced, vanished
from crosswalk.testing.origins import counts_are_the_providers, nothing_filled_in, nothing_invented
from crosswalk.testing.perturbation import (
    MISSING,
    Leaf,
    Outcome,
    Path,
    at,
    changed_paths,
    changes,
    confusions,
    outcome,
    replaced,
    show_path,
)
from crosswalk.testing.problems import PAIR_CHECK, KnownException, Problem
from crosswalk.testing.statements import disagreements
from crosswalk.testing.texts import text_as_it_was_sent, text_only_once
from crosswalk.testing.values import arguments_told_apart, digits_kept, parts_within_wholes, times_kept
from crosswalk.testing.words import known_words_keep_their_meaning, unknown_words_raise
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse

__all__ = [
    "CHECKS",
    "PROMISES",
    "check_capture",
    "check_pair",
    "normalized",
]


def normalized(mapper: Mapper, capture: Capture) -> dict[str, Any]:
    """Read *capture* with *mapper*, for a snapshot: the response, or the error and its partial response, and the deltas."""
    deltas: list[ResponseDelta] = []
    reader = Reader(mapper, reader_options(capture))
    try:
        deltas.extend(reader.read(capture.body))
        deltas.extend(reader.finish())
        return {"response": to_jsonable(reader.response()), "deltas": delta_lines(deltas)}
    except CrosswalkError as error:
        result: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
        if isinstance(error, MappingError) and error.partial is not None:
            result["partial"] = to_jsonable(error.partial)
        if deltas:
            result["deltas"] = delta_lines(deltas)
        return result


def _read(
    mapper: Mapper, capture: Capture, chunks: Iterable[bytes], *, keep_raw: bool = False
) -> tuple[list[ResponseDelta], ChatResponse]:
    reader = Reader(mapper, reader_options(capture, keep_raw=keep_raw))
    deltas = [delta for chunk in chunks for delta in reader.read(chunk)]
    deltas.extend(reader.finish())
    return deltas, reader.response()


def _shown(mapper: Mapper, capture: Capture, chunks: Iterable[bytes]) -> Any:
    """What *chunks* give, in a form that can be compared."""
    reader = Reader(mapper, reader_options(capture))
    deltas: list[ResponseDelta] = []
    try:
        for chunk in chunks:
            deltas.extend(reader.read(chunk))
        deltas.extend(reader.finish())
        return to_jsonable(deltas), to_jsonable(reader.response())
    except CrosswalkError as error:
        return to_jsonable(deltas), f"{type(error).__name__}: {error}"


def nothing_lost(case: Case) -> Iterator[Problem]:
    """P1: change one leaf of the payload, and the canonical JSON changes."""
    for leaf in case.sampled():
        for change in changes(case.events, leaf):
            after = case.map(change.events)
            if after.is_like(case.baseline):
                yield case.problem("P1", leaf, f"lost: changing its {change.name} changes nothing")
            elif after.untyped:
                yield case.problem("P4", leaf, f"changing its {change.name}: {after.error}")
    yield from _more_items(case)
    yield from _more_fields(case)


def _more_items(case: Case) -> Iterator[Problem]:
    """One more item in an array, like those that are there, is neither read for another thing nor dropped."""
    ends = [
        Leaf(number, (*path, len(items)), items)
        for number, event in enumerate(case.events)
        for path, items in _arrays(event)
    ]
    for end in case.some(case.alike(ends), None if case.sample is None else max(case.sample // 4, 2)):
        array, items = attrs.evolve(end, path=end.path[:-1]), end.value
        item = next((more for kind, more in _ITEMS.items() if type(items[-1]) is kind), "crosswalk")
        # An item that may be left out may stand between.
        for more in ([item], [None, None, None, item]):
            after = case.map(replaced(case.events, array, [*items, *more]))
            if after.error is None:
                if vanished(case.baseline, after, item):
                    yield case.problem(
                        "P1", end, "lost: one more item at the end of the array changes nothing"
                    )
                break


def _more_fields(case: Case) -> Iterator[Problem]:
    """One more field in an object, which no plugin knows, arrives, or is refused."""
    fields = [
        Leaf(number, (*path, "crosswalk"), value)
        for number, event in enumerate(case.events)
        for path, value in _objects(event)
    ]
    for field in case.some(case.alike(fields), None if case.sample is None else max(case.sample // 4, 2)):
        after = case.map(replaced(case.events, field, 1234.5))
        if after.error is None and vanished(case.baseline, after, 1234.5):
            yield case.problem("P1", field, "lost: an unknown field of the object changes nothing")


def _objects(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every object in *value* that has a field, with the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict) and value:
        yield path, value
    for key, item in items:
        yield from _objects(item, (*path, key))


_ITEMS: Final[dict[type, Any]] = {
    dict: {"crosswalk": "crosswalk"},
    list: ["crosswalk"],
    int: 7070707,
    float: 1234.5,
}


def _arrays(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Every array in *value*, a JSON value, that holds anything, with the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, list) and value:
        yield path, value
    for key, item in items:
        yield from _arrays(item, (*path, key))


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
"""So many kinds of events of one capture are told apart by their texts."""


def text_paths_hold(case: Case) -> Iterator[Problem]:
    """P3: an event that repeats another one but for the values that ``ProviderInfo`` declares means the same.

    The reader trusts the plugin in that and maps no such event. Here the hooks map each one as well, and both ways must
    agree.
    """
    info, capture = case.mapper.info, case.capture
    keys = [(key,) for key in (info.timestamp_key, info.number_key, info.usage_key) if key is not None]
    if not case.is_answer or len(case.frames) < 2:
        return
    asked = attrs.evolve(case.mapper, is_unmodified=False)
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
        if _shown(case.mapper, capture, chunks) != _shown(asked, capture, chunks):
            yield case.problem(
                "P3", leaf, "an event with another text here is not read as its text_paths promise"
            )


def _varied(value: Any, number: int) -> Any:
    """A value like *value*: its words, numbers and counts are others, another one for each *number*."""
    if isinstance(value, dict):
        return {key: _varied(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_varied(item, number) for item in value]
    if isinstance(value, str):
        return f"{value}{number}"
    return value if value is None or isinstance(value, bool) else value + number


def _some_texts(case: Case) -> list[Leaf]:
    """Leaves that hold promised texts: of events that differ in their text alone it is one."""
    paths = set(case.mapper.info.text_paths)
    kinds: dict[tuple[bytes, str | None], Leaf] = {}
    for leaf in case.leaves:
        if leaf.path in paths and isinstance(leaf.value, str) and leaf.value:
            (event,) = replaced([case.events[leaf.event]], attrs.evolve(leaf, event=0), "")
            kinds.setdefault((written(event), case.frames[leaf.event][1]), leaf)
    return case.some([*kinds.values()], None if case.sample is None else _SEVERAL)


def never_silently_wrong(case: Case) -> Iterator[Problem]:
    """P4: a stream cut after any event, or a leaf of the wrong type, never gives a wrong or untyped result."""
    yield from _truncated(case)
    for leaf in case.unlike():
        for other in confusions(leaf):
            after = case.map(replaced(case.events, leaf, other))
            what = f"with {orjson.dumps(other).decode()} in its place"
            if after.untyped:
                yield case.problem("P4", leaf, f"{what}: {after.error}")
            elif after.error is None and case.is_answer and after.response["finish_reason"] != "error":
                yield from _mistaken(case, leaf, other, after, what)
            elif other not in (None, "", [], {}, [None]) and after.is_like(case.baseline):
                yield case.problem("P4", leaf, f"{what} nothing changes")
                break  # no other value would


def _mistaken(case: Case, leaf: Leaf, other: Any, after: Outcome, what: str) -> Iterator[Problem]:
    """*other*, of a wrong type, was accepted: it must stand somewhere as it was sent, and nowhere as something else.

    A number for a number may be converted, as a time is.
    """
    if type(other) in (int, float) and type(leaf.value) in (int, float):
        return
    shown = coerced(case.typed, typed(after.response), other)
    if shown is not None:
        yield case.problem("P4", leaf, f"{what} it is read as {shown}")
    elif vanished(case.baseline, after, other):
        yield case.problem("P4", leaf, f"{what} it is accepted, and stands nowhere as it was sent")


def _truncated(case: Case) -> Iterator[Problem]:
    if len(case.events) < 2 or case.baseline.error is not None or not case.mapper.has_terminal:
        return
    whole = _said(case.baseline.response)
    counts: Iterable[int] = range(len(case.events))
    if case.sample is not None and len(case.events) > case.sample:
        counts = sorted(random.Random(case.capture.case).sample(range(len(case.events)), case.sample))
    for count in counts:
        after = case.map(case.events[:count])
        where = f"cut after event {count}"
        if after.error is None and _said(after.response) != whole:
            yield case.problem("P4", where, "looks like a complete answer, and is not")


def _said(response: Any) -> Any:
    keys = ("message", "finish_reason", "refusal", "alternatives")
    return [response.get(key) for key in keys]


def deterministic(case: Case) -> Iterator[Problem]:
    """P5: the same bytes give the same canonical JSON, which reads back to the same value."""
    try:
        deltas, response = _read(case.mapper, case.capture, [case.capture.body], keep_raw=True)
    except CrosswalkError:
        return  # errors are compared under P3
    again = _read(case.mapper, case.capture, [case.capture.body], keep_raw=True)[1]
    written = to_json(response, include_raw=True)
    if written != to_json(again, include_raw=True):
        yield case.problem("P5", "twice", "the same bytes give different canonical JSON")
    restored = from_json(written, ChatResponse)
    if to_json(restored, include_raw=True) != written or not restored.same_content(response):
        yield case.problem("P5", "round trip", "canonical JSON does not read back to the same value")
    for delta in deltas:
        if from_json(to_json(delta), ResponseDelta) != delta:
            yield case.problem("P5", f"delta {delta.index}", "does not read back to the same value")


def as_stated(case: Case) -> Iterator[Problem]:
    """P4: the response agrees with the statement about the capture."""
    says = case.capture.says
    if says is None:
        return
    reader = Reader(case.mapper, reader_options(case.capture))
    response: ChatResponse | None = None
    raised = None
    try:
        for _ in itertools.chain(reader.read(case.capture.body), reader.finish()):
            pass
        response = reader.response()
    except CrosswalkError as error:
        response, raised = getattr(error, "partial", None), error
    wanted, name = says.get("raises"), None if raised is None else type(raised).__name__
    if name != wanted:
        actual = "an answer" if raised is None else f"{name}: {raised}"
        yield case.problem("P4", "raises", f"stated as {wanted or 'an answer'}, and read as {actual}")
    else:
        for fact, difference in disagreements(says, response):
            yield case.problem("P4", fact, difference)


CHECKS: Final[dict[str, Callable[[Case], Iterator[Problem]]]] = {
    "as stated": as_stated,
    "nothing lost": nothing_lost,
    "text only once": text_only_once,
    "null erases nothing": null_erases_nothing,
    "framing does not matter": framing_does_not_matter,
    "text paths hold": text_paths_hold,
    "own framing is exact": own_framing_is_exact,
    "never silently wrong": never_silently_wrong,
    "text as it was sent": text_as_it_was_sent,
    "unknown words raise": unknown_words_raise,
    "known words keep their meaning": known_words_keep_their_meaning,
    "output shows": output_shows,
    "digits kept": digits_kept,
    "times kept": times_kept,
    "arguments told apart": arguments_told_apart,
    "errors show": errors_show,
    "failures are errors": failures_are_errors,
    "one answer at a time": one_answer_at_a_time,
    "recognizes its own": recognizes_its_own,
    "deterministic": deterministic,
    "nothing invented": nothing_invented,
    "nothing filled in": nothing_filled_in,
    "counts are the provider's": counts_are_the_providers,
    "parts within wholes": parts_within_wholes,
}
"""Every check by its name."""

PROMISES: Final[dict[str, tuple[str, ...]]] = {
    "as stated": ("as stated",),
    "nothing lost": ("nothing lost", "text only once", "null erases nothing"),
    "framing does not matter": ("framing does not matter", "text paths hold", "own framing is exact"),
    "never silently wrong": (
        "never silently wrong",
        "text as it was sent",
        "unknown words raise",
        "known words keep their meaning",
        "output shows",
        "digits kept",
        "times kept",
        "arguments told apart",
        "errors show",
        "failures are errors",
        "one answer at a time",
        "recognizes its own",
    ),
    "deterministic": ("deterministic",),
    "nothing invented": (
        "nothing invented",
        "nothing filled in",
        "counts are the provider's",
        "parts within wholes",
    ),
}
"""The promises P1, P3, P4, P5 and P8, each with the names of its checks."""


def check_capture(
    mapper: Mapper,
    capture: Capture,
    *,
    sample: int | None = 40,
    checks: Iterable[str] = tuple(CHECKS),
    tally: Tally | None = None,
    exceptions: Collection[str] = (),
    write: Write | None = None,
) -> list[Problem]:
    """Check the promises on one capture.

    Args:
        mapper: the provider.
        capture: the recorded answer.
        sample: how many leaves and cuts to try at most, the same ones every time; ``None`` for all.
        checks: names from :data:`CHECKS`.
        tally: counts what was tried; ``None`` not to count.
        exceptions: what is not reported, as ``CHECK: PATH``, the path of a leaf without the numbers of items, or as
            ``CHECK: CAPTURE``: ``"text only once: candidates[].citation.text"``.
        write: writes a frame of the provider's own framing, so that its decoder is tried with changed events.

    Raises:
        ConfigurationError: one of *exceptions* is not an exception.

    Returns:
        What is broken; empty when the promises hold. Of a capture that the provider refuses as a whole it is that alone.
    """
    case = Case(mapper, capture, sample, tally if tally is not None else Tally(), write)
    names = list(checks)
    known = [KnownException.parsed(text, "", CHECKS) for text in exceptions]
    if case.refusal is not None and capture.says and capture.says.get("raises"):
        return [attrs.evolve(problem, check="as stated") for problem in as_stated(case)]
    if case.refusal is not None:
        problem = case.problem("P4", "as it is", case.refusal)
        return [attrs.evolve(problem, check=name) for name in names if name == "never silently wrong"]
    found = [attrs.evolve(problem, check=name) for name in names for problem in CHECKS[name](case)]
    return [problem for problem in found if not any(one.covers(problem) for one in known)]


def check_pair(
    mapper: Mapper,
    whole: Capture,
    streamed: Capture,
    *,
    ignored: Sequence[str] = (),
) -> list[Problem]:
    """P2: the body and the stream of the same exchange give the same response.

    Compared is everything but ids, times, what a server's cache held, and the extensions, whose structure is the
    provider's own and another one in a stream.

    Args:
        mapper: the provider.
        whole: the body.
        streamed: the stream.
        ignored: canonical paths, such as ``metadata.extensions.object``.
    """
    problem = partial(Problem, "P2", f"{whole.case} ~ {streamed.case}", check=PAIR_CHECK, case=whole.pair)
    left, right = normalized(mapper, whole), normalized(mapper, streamed)
    if "response" not in left or "response" not in right:
        both = left.get("error"), right.get("error")
        return [] if both[0] == both[1] else [problem(f"ends in {both[0]} and {both[1]}")]
    ends = left["response"]["finish_reason"], right["response"]["finish_reason"]
    if ends == ("error", "error"):
        return []  # a body has no room for what came before the error
    before, after = _comparable(left["response"]), _comparable(right["response"])
    found = [show_path(path) for path in changed_paths(before, after)]
    different = [path for path in found if not path.startswith(tuple(ignored))]
    if not different:
        return []
    return [problem(f"body and stream disagree in {', '.join(different)}")]


def _comparable(response: dict[str, Any]) -> dict[str, Any]:
    """*response* without what differs between two exchanges that say the same."""
    kept = _without(response, "id", "created")
    kept["usage"] = _without(response["usage"], "cached_tokens", "cache_write_tokens")
    kept["metadata"] = {"provider_id": response["metadata"]["provider_id"], "model_id": response["model"]}
    kept["metadata"]["provenance"] = response["metadata"].get("provenance", {})
    kept.update(_without_ids(response))
    kept["alternatives"] = [{**answer, **_without_ids(answer)} for answer in response.get("alternatives", ())]
    return kept


def _without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def _without_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Message and segments of *answer* without ids: a server makes new ones for each exchange.

    Arguments are compared as JSON: in a body a server may send them as an object, in a stream as the model spelt them.
    """
    calls = [
        {**_without(call, "id"), "arguments": _meaning(call["arguments"])}
        for call in answer["message"].get("tool_calls", ())
    ]
    segments = [
        {
            **segment,
            "content": _meaning(segment["content"]) if segment["type"] == "tool_call" else segment["content"],
            "metadata": _without(segment.get("metadata", {}), "id"),
        }
        for segment in answer.get("segments", ())
    ]
    return {"message": {**answer["message"], "tool_calls": calls}, "segments": segments}


def _meaning(arguments: str) -> str:
    """*arguments* without the white space that makes no difference; as they are where they are no JSON."""
    try:
        return orjson.dumps(orjson.loads(arguments)).decode()
    except orjson.JSONDecodeError:
        return arguments

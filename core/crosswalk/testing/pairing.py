"""Checks of framing, and of a body against the stream of the same exchange (P2, P3)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import attrs
import orjson

from crosswalk.codec import to_jsonable
from crosswalk.errors import CanonicalJSONError, CrosswalkError, FramingError, MappingError
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import Mapper
from crosswalk.plugin.state import time_of
from crosswalk.testing.captures import Capture, written
from crosswalk.testing.case import MARKER, Case, decoded, occurrences, reader_options
from crosswalk.testing.perturbation import MISSING, Leaf, at, changed_paths, outcome, show_path, with_value
from crosswalk.testing.problems import PAIR_CHECK, Problem
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.usage import Provenance

# -------------------------------------------------------------------------------- framings
# Checks of framing: cuts, line ends, repeated events, and a provider's own framing, which the test class can write.


def _read_result(mapper: Mapper, capture: Capture, chunks: Iterable[bytes]) -> Any:
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
    whole_result = _read_result(mapper, capture, [body])
    rng = random.Random(capture.case)
    tried: list[tuple[str, str, list[bytes]]] = []
    for number in range(4):
        cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(1, 12)))
        chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        tried.append((f"cuts {number}", f"cut at {cuts}", chunks))
    if len(body) <= 20_000:
        tried.append(("single bytes", "byte by byte", [body[i : i + 1] for i in range(len(body))]))
    if not case.has_own_framing:
        tried += [(name, "framed so,", [variant]) for name, variant in _reframed(capture)]
    case.tally.mappings += len(tried)
    for name, manner, chunks in tried:
        if _read_result(mapper, capture, chunks) != whole_result:
            yield case.problem("P3", name, f"{manner} it is read differently")
    if case.events and capture.status < 400 and not any(name for _, name in case.frames):
        event_outcome = outcome(mapper, case.events, options=reader_options(capture))
        if event_outcome.error is None and (event_outcome.deltas, event_outcome.response) != whole_result:
            yield case.problem("P3", "events", "parsed event by event it is read differently")


def _reframed(capture: Capture) -> Iterator[tuple[str, bytes]]:
    if capture.status >= 400 or not capture.stream or b"\r" in capture.body:
        return
    body = capture.body
    yield "crlf", body.replace(b"\n", b"\r\n")
    if body.lstrip().startswith(b"{"):
        yield "blank lines", body.replace(b"\n", b"\n\n")
        yield "no last newline", body.rstrip(b"\n")
    else:
        yield "cr", body.replace(b"\n", b"\r")
        yield "comments", body.replace(b"\n\n", b"\n\n: keep-alive\n\n")
        yield "byte order mark", b"\xef\xbb\xbf" + body


_TRICKY_TEXTS: Final = ("a", " ", "\n", "0", "{", "<think>", "<|im_end|>", MARKER)
_ROUNDS: Final = 5
"""How often the texts come: a reader that met nothing alike looks again only after some 32 events."""
_MAX_TEXT_KINDS: Final = 8
"""The number of kinds of events of one capture that are told apart by their texts."""


def text_paths_hold(case: Case) -> Iterator[Problem]:
    """P3: an event that repeats another one except for the values that ``ProviderInfo`` declares has the same meaning.

    The reader trusts the plugin in this and maps no such event. Here the hooks map each one as well, and both ways must
    agree.
    """
    info, capture = case.mapper.info, case.capture
    key_paths = [(key,) for key in (info.timestamp_key, info.number_key, info.usage_key) if key is not None]
    if not case.is_answer or len(case.frames) < 2:
        return
    full_mapper = attrs.evolve(case.mapper, is_unmodified=False)
    for leaf in _some_texts(case):
        data, name = case.frames[leaf.event]
        added_events: list[Any] = []
        for number, text in enumerate((*_TRICKY_TEXTS * _ROUNDS, leaf.value), start=1):
            event = with_value(case.events[leaf.event], leaf.path, text)
            for path in (*key_paths, *info.logprob_paths):
                if (value := at(event, path)) is not MISSING:
                    event = with_value(event, path, _varied(value, number))
            added_events.append(event)
        next_index = leaf.event + 1
        events = [*case.events[:next_index], *added_events, *case.events[next_index:]]
        frames = [(data, name), *((written(event), name) for event in added_events)]
        frames = [*case.frames[: leaf.event], *frames, *case.frames[next_index:]]
        chunks = [case.reframed(frames, events)(events)]
        case.tally.mappings += 2
        if _read_result(case.mapper, capture, chunks) != _read_result(full_mapper, capture, chunks):
            message = "an event with another text here is not read as its text_paths promise"
            yield case.problem("P3", leaf, message)


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
    leaf_by_kind: dict[tuple[bytes, str | None], Leaf] = {}
    for leaf in case.leaves:
        if leaf.path in paths and isinstance(leaf.value, str) and leaf.value:
            event = with_value(case.events[leaf.event], leaf.path, "")
            leaf_by_kind.setdefault((written(event), case.frames[leaf.event][1]), leaf)
    return case.some([*leaf_by_kind.values()], None if case.sample is None else _MAX_TEXT_KINDS)


_TOKEN: Final = "crosswalk7token"
_LARGE_TEXT: Final = "Kelp " * 30_000
"""More bytes than two bytes can count."""
_INVALID_BYTES: Final = b"Ke\xff\xc3Lp"
"""Bytes that are not UTF-8."""


def own_framing_is_exact(case: Case) -> Iterator[Problem]:
    """P3: every byte of a frame counts. Bytes after the last frame, half a frame and invalid UTF-8 are errors."""
    yield from _invalid_text(case)
    if not case.has_own_framing or case.write is None or case.baseline.error is not None:
        return
    body = case.capture.body
    whole_outcome = case.map_bytes(body)
    if not whole_outcome.is_like(case.baseline):
        message = "the frames that it writes are read differently from the recorded ones"
        yield case.problem("P3", "write", message)
        return
    frame = case.write(*case.frames[0])
    for name, remainder in (
        ("bytes that are not a frame", b"\x00crosswalk" * 4),
        ("half a frame", frame[: len(frame) // 2]),
    ):
        if case.map_bytes(body + remainder).error is None:
            yield case.problem("P3", "the end", f"{name} behind the answer are passed over")
    places = case.places(str)
    refused = [place for place in places if isinstance(case.marked(place).cause, FramingError)]
    for place in refused[:1]:
        message = f"a frame with another text is refused: {case.marked(place).error}"
        yield case.problem("P3", place, message)
    for place in places:
        if case.marked(place).error is None and occurrences(case.marked(place).response):
            large_outcome = case.map(place.put(case.events, _LARGE_TEXT))
            if large_outcome.error is not None:
                message = f"a frame of {len(_LARGE_TEXT)} bytes is refused: {large_outcome.error}"
                yield case.problem("P3", place, message)
            break
    # White space in place of other white space may end a frame, too.
    tried = [place for place, byte in enumerate(body) if not bytes((byte, byte ^ 1)).isspace()]
    for position in case.some(tried, None if case.sample is None else 4 * case.sample):
        changed_body = bytearray(body)
        changed_body[position] ^= 0x01
        if case.map_bytes(bytes(changed_body)).is_like(whole_outcome):
            _, events = decoded(case.mapper, attrs.evolve(case.capture, body=bytes(changed_body)))
            changed = next(changed_paths(case.events, events), ())
            pair = at(case.events, changed), at(events, changed)
            if all(isinstance(one, str) and time_of(one) for one in pair):
                continue  # a digit of less than a microsecond
            where = Leaf(int(changed[0]), changed[1:], None) if len(changed) > 1 else f"byte {position}"
            bytes_shown = f"{chr(changed_body[position])!r} for {chr(body[position])!r}"
            yield case.problem("P3", where, f"another byte changes nothing: {bytes_shown}")
            break


def _invalid_text(case: Case) -> Iterator[Problem]:
    """Bytes that are not UTF-8 in place of a text give an error, or show as U+FFFD."""
    if not case.is_answer:
        return
    text_event_names = case.mapper.info.text_events
    single_places = [place for place in case.places(str) if len(place.leaves) == 1]
    json_places = [
        place for place in single_places if case.frames[place.leaves[0].event][1] not in text_event_names
    ]
    for place in case.some(json_places, 3):
        events = place.put(case.events, _TOKEN)
        frames = [
            (data if event is old_event else written(event).replace(_TOKEN.encode(), _INVALID_BYTES), name)
            for event, old_event, (data, name) in zip(events, case.events, case.frames, strict=True)
        ]
        body = case.reframed(frames, events)(events).replace(_TOKEN.encode(), _INVALID_BYTES)
        changed_outcome = case.map_bytes(body)
        if changed_outcome.is_taken and not occurrences(changed_outcome.response, "\ufffd"):
            yield case.problem("P4", place, "bytes in it that are not UTF-8 are dropped", about="framing")


# --------------------------------------------------------------------------------- pairing
# One capture as a snapshot, and a body against the stream of the same exchange (P2).


def normalized(mapper: Mapper, capture: Capture) -> dict[str, Any]:
    """Return the snapshot of *capture*: the response, or the error and its partial response, and the deltas."""
    deltas: list[ResponseDelta] = []
    reader = Reader(mapper, reader_options(capture))
    try:
        deltas.extend(reader.read(capture.body))
        deltas.extend(reader.finish())
        return {"response": to_jsonable(reader.response()), "deltas": delta_lines(deltas)}
    except CrosswalkError as error:
        snapshot: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
        with suppress(CanonicalJSONError):  # what a plugin left, and JSON does not have
            if isinstance(error, MappingError) and error.partial is not None:
                snapshot["partial"] = to_jsonable(error.partial)
            if deltas:
                snapshot["deltas"] = delta_lines(deltas)
        return snapshot


def check_pair(
    mapper: Mapper, whole: Capture, streamed: Capture, *, ignored: Sequence[str] = ()
) -> list[Problem]:
    """P2: the body and the stream of the same exchange give the same response.

    Ids, times, the hits of a server's cache, and the extensions are not compared. The structure of the extensions is
    specific to the provider and differs in a stream. Nor is a field that one of the forms marks as absent, other than
    texts, calls and the end: most servers' streams lack something that their bodies have.

    Args:
        mapper: the provider.
        whole: the body.
        streamed: the stream.
        ignored: canonical paths, such as ``metadata.extensions.object``.

    Returns:
        A problem for each field that differs. Its path is the field.
    """
    make_problem = partial(
        Problem, "P2", f"{whole.case} ~ {streamed.case}", check=PAIR_CHECK, case=whole.pair
    )
    whole_snapshot, stream_snapshot = normalized(mapper, whole), normalized(mapper, streamed)
    if "response" not in whole_snapshot or "response" not in stream_snapshot:
        errors = whole_snapshot.get("error"), stream_snapshot.get("error")
        return (
            []
            if errors[0] == errors[1]
            else [make_problem(f"ends in {errors[0]} and {errors[1]}", path="error")]
        )
    forms = [whole_snapshot["response"], stream_snapshot["response"]]
    if [one["finish_reason"] for one in forms] == ["error", "error"]:
        return []  # a body cannot carry the output before the error
    absent_fields = {
        name
        for one in forms
        for name, mark in one["metadata"].get("provenance", {}).items()
        if mark == Provenance.ABSENT and name.partition(".")[0] not in _ALWAYS_COMPARED
    }
    if any(name.startswith("usage.") for name in absent_fields):
        absent_fields.add("usage.total_tokens")
    paths_by_field: dict[str, list[str]] = {}
    for changed_path in changed_paths(_comparable(forms[0]), _comparable(forms[1])):
        path = show_path(changed_path)
        shown_path = path.removeprefix("metadata.provenance.")
        is_absent = shown_path in absent_fields or shown_path.rpartition(".")[0] in absent_fields
        if not is_absent and not path.startswith(tuple(ignored)):
            field, _, part = re.sub(r"\[.*", "", shown_path).partition(".")
            field = f"{field}.{part}" if field == "message" else field
            if field == "segments":  # what the message says, again
                field = next((one for one in paths_by_field if one.startswith("message.")), field)
            paths_by_field.setdefault(field, []).append(path)
    return [
        make_problem(f"body and stream disagree in {', '.join(paths)}", path=field, fields=(field,))
        for field, paths in paths_by_field.items()
    ]


_ALWAYS_COMPARED: Final = ("message", "segments", "alternatives", "refusal", "finish_reason")
"""Fields that a stream has wherever its body has them."""


def _comparable(response: dict[str, Any]) -> dict[str, Any]:
    """Return *response* without the parts that differ between two exchanges of the same content."""
    comparable_response = _without(response, "id", "created")
    comparable_response["usage"] = _without(response["usage"], "cached_tokens", "cache_write_tokens")
    provenance = response["metadata"].get("provenance", {})
    comparable_response["metadata"] = {
        "provider_id": response["metadata"]["provider_id"],
        "provenance": provenance,
    }
    comparable_response.update(_without_ids(response))
    comparable_response["alternatives"] = [
        {**answer, **_without_ids(answer)} for answer in response.get("alternatives", ())
    ]
    return comparable_response


def _without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}


def _without_ids(answer: dict[str, Any]) -> dict[str, Any]:
    """Return message and segments of *answer* without ids: a server makes new ones for each exchange.

    Arguments are compared as JSON: in a body a server may send them as an object, in a stream as the model wrote them.
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
    """Return *arguments* without insignificant white space, or unchanged if they are not JSON."""
    try:
        return orjson.dumps(orjson.loads(arguments)).decode()
    except orjson.JSONDecodeError:
        return arguments


_TEXT_SEPARATOR: Final = "¦"
"""Separates the texts of two deltas."""
_WIDTH: Final = 100
"""A line of at least this many characters takes no further delta."""
_LONGEST: Final = 60
"""The number of characters of a value that are shown. The response holds all of it."""
_TEXT_FIELDS: Final = {
    "content_delta": "text",
    "reasoning_delta": "reasoning",
    "refusal_delta": "refusal",
    "arguments_delta": "arguments",
}
_WORD: Final = re.compile(r"[A-Za-z_][\w.:/-]*")


def delta_lines(deltas: Iterable[ResponseDelta]) -> list[str]:
    """Describe *deltas* in lines such as ``text choice=1 | object=chat.completion.chunk: Hel¦lo``.

    A line has the kind of the text, the typed fields, after ``|`` the extensions, and the text. Consecutive deltas that
    differ only in their text share a line, with ``¦`` between their texts. For log probabilities only the number is shown.
    """
    lines: list[str] = []
    last_label = None
    for delta in deltas:
        label, text = _describe(delta)
        if text is None:
            lines.append(label)
        elif label == last_label and len(lines[-1]) < _WIDTH:
            lines[-1] += _TEXT_SEPARATOR + text
        else:
            lines.append(f"{label}: {text}")
        last_label = None if text is None else label
    return lines


def _describe(delta: ResponseDelta) -> tuple[str, str | None]:
    """Describe the content of *delta* without the first of its texts, and return that text."""
    fields = to_jsonable(delta)
    del fields["index"]
    call = fields.pop("tool_call_delta", {})
    fields = {"call" if name == "index" else name: value for name, value in call.items()} | fields
    logprobs = fields.pop("logprobs", None)
    if logprobs is not None:
        fields["logprobs"] = len(logprobs)
    text_field = next((name for name in _TEXT_FIELDS if name in fields), None)
    text = None if text_field is None else fields.pop(text_field)
    segment, extensions = fields.pop("segment", {}), fields.pop("extensions", {})
    facts = [
        *([_TEXT_FIELDS[text_field]] if text_field else []),
        *_facts(fields | segment),
        *(["|"] if extensions else []),
    ]
    return " ".join([*facts, *_facts(extensions)]), text


def _facts(fields: dict[str, Any]) -> Iterator[str]:
    for name, field in fields.items():
        for path, value in _values(field, (name,)):
            yield f"{show_path(path)}={_shown(value)}"


def _values(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the scalars and empty containers in *value*, each with its path."""
    if value and isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _values(item, (*path, key))
    else:
        yield path, value


def _shown(value: Any) -> str:
    """Return *value* in short: a word unchanged, any other string in single quotes, the rest as JSON."""
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    if len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}({len(value)})"
    return value if _WORD.fullmatch(value) and value not in ("null", "true", "false") else repr(value)

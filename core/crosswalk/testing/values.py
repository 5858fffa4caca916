"""Checks of what is made of the single values: each as it was sent, in one place, and never taken for another."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import orjson

from crosswalk.errors import PluginError
from crosswalk.plugin.info import Recognition
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import registry
from crosswalk.testing.captures import reframer, written
from crosswalk.testing.case import MARKER, NAME, Case, Place, Problem, marker_for, strings, typed
from crosswalk.testing.perturbation import (
    MISSING,
    Leaf,
    Outcome,
    Path,
    at,
    changed_paths,
    replaced,
    scalars,
    show_path,
)
from crosswalk.text import counted
from crosswalk.types.finish import FinishReason
from crosswalk.types.metadata import Provenance

__all__ = [
    "coerced",
    "errors_show",
    "known_words_keep_their_meaning",
    "null_erases_nothing",
    "one_answer_at_a_time",
    "output_shows",
    "recognizes_its_own",
    "text_as_it_was_sent",
    "text_only_once",
    "unknown_words_raise",
    "vanished",
]

_REASONING: Final = re.compile(r"reasoning|think|thought", re.IGNORECASE)


def _count(value: Any, text: str = MARKER) -> int:
    return sum(found.count(text) for found in strings(value))


# --------------------------------------------------------------------------------------------- texts


def text_as_it_was_sent(case: Case) -> Iterator[Problem]:
    """P4: another text in a text's place shows exactly as it is, capitals, spaces and all, or is refused."""
    for place in _texts(case):
        after = case.marked(place)
        if place.value.isdecimal():
            yield from _padded_numbers(case, place)
        if after.error is not None or after.response is None:
            continue
        if not _count(after.response) and not _count(after.deltas):
            yield case.problem("P4", place, "another text in its place is not passed on as it is")
        elif _says_reasoning(case, place.leaves[0]) and _count(after.response["message"].get("content")):
            yield case.problem("P4", place, "reasoning is given as the text of the answer")
        elif marker_for(place.value) == MARKER:
            yield from _changed_texts(case, Place(place.leaves[:4]))
    yield from _equal_pieces(case)


_TEXTS: Final = {
    "  ": "a text of white space",
    "\n": "a line break",
    f"\r\n\t{'Kelp ' * 14_000}\t\r\n": "a long text with white space around it",
}


def _changed_texts(case: Case, place: Place) -> Iterator[Problem]:
    """What is said by the first choice at *place* is white space, or long."""
    said = "".join(_parts(case.marked(place).response))
    for text, name in _TEXTS.items() if MARKER in said else ():
        if place.value.startswith(text):
            continue  # a later event that repeats the whole would then go on where this one ended
        after = case.map(place.put(case.events, text))
        in_json = orjson.dumps(text).decode()[1:-1]  # as it stands in the arguments of a call
        if after.error is None and "".join(_parts(after.response)) not in {
            said.replace(MARKER, text),
            said.replace(MARKER, in_json),
        }:
            yield case.problem("P4", place, f"{name} in its place is not passed on as it is")


def _padded_numbers(case: Case, place: Place) -> Iterator[Problem]:
    """The digits of a number are text: others that Python's ``int`` takes are no number that a server writes."""
    for text in (f" {place.value}\n", f"1_{place.value}"):
        after = case.map(place.put(case.events, text))
        if after.error is None and not _count(after.response, text) and not _count(after.deltas, text):
            yield case.problem("P4", place, f"{text!r} in its place is read as a number")


def _equal_pieces(case: Case) -> Iterator[Problem]:
    """Pieces of text in a row: where different ones are all passed on, equal ones are, too."""
    for place in case.every_place(str, by_value=False):
        few = [leaf for leaf in place.leaves if leaf.value and marker_for(leaf.value) == MARKER][:4]
        if len({leaf.value for leaf in few}) < 2:
            continue
        events = case.events
        for number, leaf in enumerate(few):
            events = replaced(events, leaf, f"{number}{MARKER}")
        unlike, alike = case.map(events), case.map(Place(tuple(few)).put(case.events, MARKER))
        if unlike.error is not None or alike.error is not None:
            continue
        if _count(_parts(alike.response)) < _count(_parts(unlike.response)):
            yield case.problem("P4", place, "the same text again, in its next event, is not passed on")


def _parts(response: dict[str, Any]) -> list[str]:
    """What was said by the first choice: texts, reasoning, arguments."""
    return [part["content"] for part in response.get("segments", ())]


def _texts(case: Case) -> list[Place]:
    if case.baseline.error is not None or not case.events:
        return []
    return case.places(str)


def _says_reasoning(case: Case, leaf: Leaf) -> bool:
    names = (*(key for key in leaf.path if isinstance(key, str)), *case.words(leaf))
    return any(_REASONING.search(name) for name in names)


def text_only_once(case: Case) -> Iterator[Problem]:
    """P1: what a typed field has taken is not in the extensions as well, and no text is given twice.

    What is derived from a part that is kept may repeat it: citations, verdicts, media and errors.
    """
    for place in _texts(case):
        after = case.marked(place)
        if after.error is not None or after.response is None:
            continue
        extensions = after.response["metadata"].get("extensions", {})
        if _count(extensions) and _count(_spoken(after.response)):
            where = next(
                path for path, text in scalars(extensions) if isinstance(text, str) and MARKER in text
            )
            yield case.problem(
                "P1", place, f"stands in a typed field and in the extensions: {show_path(where)}"
            )
        for kind in ("text", "reasoning", "refusal"):
            parts = [p["content"] for p in after.response.get("segments", ()) if p["type"] == kind]
            if _count(parts) > _count(marker_for(place.value)) * len(place.leaves):
                yield case.problem("P1", place, f"stands more than once in the {kind} of the answer")
    yield from _doubled(case)


_DERIVED: Final = frozenset({"citation", "safety", "media", "error"})


def _spoken(response: dict[str, Any]) -> dict[str, Any]:
    """The typed fields of *response* that hold what was said, without those that are derived from it."""
    parts = [part for part in response.get("segments", ()) if part["type"] not in _DERIVED]
    derived = ("content_filter_results", "refusal")
    rest = {key: value for key, value in typed(response).items() if key not in derived}
    return {**rest, "segments": [{**part, "metadata": {}} for part in parts]}


def _doubled(case: Case) -> Iterator[Problem]:
    """Text that grows from event to event, or is said again at the end, is given twice."""
    if not case.is_answer or len(case.events) < 2:
        return
    shown = {text for text in strings(case.typed["message"]) if len(text) > 3}
    by_path: dict[Path, list[str]] = {}
    for leaf in case.leaves:
        if isinstance(leaf.value, str) and leaf.value:
            by_path.setdefault(leaf.path, []).append(leaf.value)
    in_pieces = {"".join(pieces): path for path, pieces in by_path.items() if len(pieces) > 1}
    whole = {pieces[0] for pieces in by_path.values() if len(pieces) == 1}
    for text, path in in_pieces.items():
        pieces = by_path[path]
        grows = len(pieces) > 2 and all(
            len(b) > len(a) and b.startswith(a) for a, b in itertools.pairwise(pieces)
        )
        if grows and text in shown:
            yield case.problem("P1", show_path(path), "the text grows from event to event, and is added up")
        if text in whole and text * 2 in shown:
            yield case.problem(
                "P1", show_path(path), "the text is said again as a whole, and is added to itself"
            )


# --------------------------------------------------------------------------------------------- words


def unknown_words_raise(case: Case) -> Iterator[Problem]:
    """P4: a finish word, or the name of an event or of a part, that nobody knows is an error, or marked."""
    if not case.is_answer:
        return
    before = _answer(case.baseline.response)
    raw = case.baseline.response.get("raw_finish_reason")
    for place in case.places(str):
        yield from _almost_known(case, place) if raw and place.value == raw else ()
        after = case.marked(place)
        if after.error is not None:
            continue
        response = after.response
        finish = response["finish_reason"]
        if MARKER in str(response.get("raw_finish_reason")):
            if finish in _WHOLE and not _is_unmapped(response):
                yield case.problem("P4", place, f"an unknown finish word is read as {finish}")
        elif _is_name(place) and _answer(response) != before and not _count(typed(response)):
            yield case.problem(
                "P4", place, "an unknown word in its place changes the answer without an error"
            )
    for name in dict.fromkeys(name for _, name in case.frames if name is not None):
        after = case.map_bytes(_with_another_name(case, name))
        if after.error is None and _answer(after.response) != before:
            yield case.problem(
                "P4",
                f"events named {name}",
                "with a name that nobody knows they change the answer without an error",
            )


def _almost_known(case: Case, place: Place) -> Iterator[Problem]:
    """A finish word that is nearly a known one is taken for it, or made one before it is told."""
    word = place.value
    near = [f"{word}_crosswalk", f"crosswalk_{word}", f" {word}\n"]
    if word.lower() not in tuple(FinishReason):  # which are read in any case
        near.append(word.swapcase() if word.upper() != word.lower() else f"{word}.")
    for said in near:
        after = case.map(place.put(case.events, said))
        if after.error is not None or _is_unmapped(after.response):
            continue
        finish, raw = after.response["finish_reason"], after.response.get("raw_finish_reason")
        if finish in _WHOLE and raw == said:
            yield case.problem("P4", place, f"the unknown finish word {said!r} is read as {finish}")
        elif not _count(after.response, said) and not _count(after.deltas, said):
            yield case.problem("P4", place, f"the finish word {said!r} is passed on as {raw!r}")


def _with_another_name(case: Case, name: str) -> bytes:
    """The capture with a name that nobody knows for its events of *name*."""
    frames = [(data, "crosswalk" if said == name else said) for data, said in case.frames]
    is_own = case.capture.has_own_framing(case.mapper.info.framing)
    return reframer(case.capture, frames, case.events, as_sse=is_own)(case.events)


_WHOLE: Final = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH})


def _is_name(place: Place) -> bool:
    """Whether it is a word at the top of an event, as the name of an event is. Unknown parts inside one may be kept."""
    return len(place.path) == 1 and NAME.fullmatch(place.value) is not None


def _answer(response: dict[str, Any]) -> Any:
    keys = ("message", "finish_reason", "refusal", "usage", "alternatives")
    return [response.get(key) for key in keys], [part["content"] for part in response.get("segments", ())]


_NEVER: Final[dict[str, set[FinishReason]]] = {
    "stop": {FinishReason.LENGTH, FinishReason.CANCELLED},
    "end_turn": {FinishReason.LENGTH, FinishReason.CANCELLED},
    "length": {FinishReason.STOP, FinishReason.TOOL_CALLS},
    "max_tokens": {FinishReason.STOP, FinishReason.TOOL_CALLS},
    "content_filter": {FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH},
    "safety": {FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH},
    "tool_calls": {FinishReason.LENGTH, FinishReason.CANCELLED},
    "tool_use": {FinishReason.LENGTH, FinishReason.CANCELLED},
    "error": {FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH},
    "cancelled": {FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH},
}
"""Words that mean the same to everybody, with what they never mean."""


def known_words_keep_their_meaning(case: Case) -> Iterator[Problem]:
    """P4: a finish word that means the same to everybody means that here too, or raises."""
    if not case.is_answer:
        return
    raw = case.baseline.response.get("raw_finish_reason")
    for place in case.places(str):
        for word in _NEVER if place.value == raw else ():
            spelt = word.upper() if raw.isupper() else word
            after = case.map(place.put(case.events, spelt))
            if after.error is not None or after.response.get("raw_finish_reason") != spelt:
                continue
            if after.response["finish_reason"] in _NEVER[word] and not _is_unmapped(after.response):
                yield case.problem("P4", place, f"{spelt} is read as {after.response['finish_reason']}")


def _is_unmapped(response: dict[str, Any]) -> bool:
    return bool(response["metadata"].get("provenance", {}).get("finish_reason") == Provenance.UNMAPPED)


# --------------------------------------------------------------------------------------------- types


def coerced(before: Any, after: Any, value: Any) -> str | None:
    """How *value*, put into a payload, shows as a text in the typed fields; ``None`` where it does not.

    Args:
        before: what the typed fields held without it, as canonical JSON.
        after: what they hold with it.
        value: it.
    """
    if after == before:
        return None
    fresh, spellings = Counter(_texts_of(after)) - Counter(_texts_of(before)), _spellings(value)
    for text in fresh:
        is_spelt = text == "-1" if value == -1 else any(spelt in text for spelt in spellings)
        if is_spelt and not _is_object(text):
            return f"the text {text[:40]!r}"
    return None


def _spellings(value: Any) -> set[str]:
    """How a careless conversion to text spells *value*; as JSON an object may stand for the text of one."""
    if isinstance(value, str):
        return set()
    spelt, as_json = {str(value)}, {orjson.dumps(value).decode()}
    return spelt - as_json if isinstance(value, dict) else spelt | as_json


def _texts_of(value: Any) -> Iterator[str]:
    return (text for _, text in scalars(value) if isinstance(text, str))


def _is_object(text: str) -> bool:
    """Whether *text* is that of a JSON object, in which a value keeps its type."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def vanished(before: Outcome, after: Outcome, value: Any) -> bool:
    """Whether *value*, put into a payload, stands nowhere in what came of it; of what is empty nothing need be left."""
    if value in (None, "", [], {}) or value == [None]:
        return False
    # The text tells at once, mostly; where what stood there before has gone too, the paths do.
    needle = b"crosswalk" if isinstance(value, str | list | dict) else written(value)
    if after.text.count(needle) > before.text.count(needle):
        return False
    if after.text_of_deltas.count(needle) > before.text_of_deltas.count(needle):
        return False
    pairs = (before.response, after.response), (before.deltas, after.deltas)
    return not any(_places_of(value, new) - _places_of(value, old) for old, new in pairs)


def _places_of(value: Any, node: Any, path: Path = ()) -> Counter[Path]:
    """Where *value* stands in *node*, as it is, in a text, or in the text of an object."""
    if type(node) is type(value) and node == value:
        return Counter([path])
    if isinstance(node, str):
        if isinstance(value, str):
            return Counter({path: node.count(value)})
        is_json = isinstance(value, dict) or _is_object(node)
        return Counter({path: node.count(orjson.dumps(value).decode()) if is_json else 0})
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found: Counter[Path] = Counter()
    for key, item in items:
        found += _places_of(value, item, (*path, key))
    return found


# --------------------------------------------------------------------------------------------- the rest


def null_erases_nothing(case: Case) -> Iterator[Problem]:
    """P1: null for something that was said before takes nothing away."""
    if len(case.events) < 2 or not case.is_answer:
        return
    before = case.baseline.response
    for place in case.places(by_value=False):
        events = _with_null(case.events, place) or case.events
        after = case.baseline if events is case.events else case.map(events)
        for path in changed_paths(before, after.response) if after.error is None else ():
            old, new = at(before, path), at(after.response, path)
            is_gone = old is not MISSING and old and (new is MISSING or not new)
            gone = _leaves_of(old, path) - _leaves_of(after.response) if is_gone else set()
            if gone and gone & _known_before(case, events):
                yield case.problem("P1", place, f"null in a later event erases {show_path(path)}")
                break


def _known_before(case: Case, events: list[Any]) -> set[tuple[str, str]]:
    """What had been said when the first of *events* came that is another one than the server sent.

    What one answer says for the first time may stand where another one, whose events are mixed with its own, said it before.
    """
    first = next(number for number, event in enumerate(events) if event is not case.events[number])
    return _leaves_of(case.map(case.events[:first]).response)


def _leaves_of(value: Any, path: Path = ()) -> set[tuple[str, str]]:
    """Each scalar in *value*, which stands at *path*, wherever in an array it is: more items may come before it."""
    return {(show_path(where, items=False), repr(leaf)) for where, leaf in scalars(value, path)}


def _with_null(events: list[Any], place: Place) -> list[Any] | None:
    """*events* with null after *place*: where it, or what holds it, is missing; else where each event says it again."""
    said = place.leaves[-1]
    for depth in range(len(said.path), 0, -1):
        *parents, key = said.path[:depth]
        for number in range(said.event + 1, len(events) if isinstance(key, str) else 0):
            beside = at(events[number], tuple(parents))
            if isinstance(beside, dict) and key not in beside:
                return replaced(events, Leaf(number, said.path[:depth], None), None)
    if len(said.path) == 1 < len(place.leaves) and all(leaf.value == said.value for leaf in place.leaves):
        return Place(place.leaves[1:]).put(events, None)
    return None


def output_shows(case: Case) -> Iterator[Problem]:
    """P4: an answer whose tokens were counted, or that leaves prose in the extensions, has text or parts."""
    if not case.is_answer:
        return
    response = case.baseline.response
    message, finish = response["message"], response["finish_reason"]
    is_empty = not any(message.get(key) for key in ("content", "tool_calls")) and not response.get("segments")
    if not is_empty or finish not in {FinishReason.STOP, FinishReason.TOOL_CALLS} or response.get("refusal"):
        return
    usage = response["usage"]
    spoken = usage["completion_tokens"] - usage.get("reasoning_tokens", 0)
    extensions = _extensions(response)
    # What was generated may be lost in the server; it is there if the extensions hold words.
    words = 2 if spoken > 2 else 3
    prose = [
        path for path, text in scalars(extensions) if isinstance(text, str) and len(text.split()) >= words
    ]
    if prose and (spoken > 2 or response.get("raw_finish_reason")):
        where = f"{show_path(prose[0])} is left in the extensions"
        yield case.problem("P4", "message", f"an answer of {counted(spoken, 'token')} is empty, and {where}")


_ERROR: Final = {"error": {"message": "The server failed.", "type": "server_error", "code": 500}}
"""As most APIs say it."""


def errors_show(case: Case) -> Iterator[Problem]:
    """P4: with an error in the place of an event, or of the body, the answer is an error, or it raises."""
    if not case.is_answer:
        return
    place = len(case.events) // 2
    after = case.map([*case.events[:place], _ERROR, *case.events[place + 1 :]])
    if after.error is None and after.response["finish_reason"] != "error":
        where = "is left in the extensions" if "error" in str(_extensions(after.response)) else "is gone"
        yield case.problem("P4", f"event {place + 1} an error", f"the answer is whole, and the error {where}")


def _extensions(response: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = response["metadata"].get("extensions", {})
    return found


def one_answer_at_a_time(case: Case) -> Iterator[Problem]:
    """P4: an answer behind this one is an error, or changes nothing that was said; one beside it changes nothing."""
    if case.is_answer:
        yield from _side_by_side(case)
    if not case.is_answer or case.mapper.info.repeats_finish:
        return
    after = case.map_bytes(case.capture.body + b"\n\n" + case.capture.body)
    is_accepted = after.error is None and after.response["finish_reason"] != "error"
    if is_accepted and _answer(after.response) != _answer(case.baseline.response):
        yield case.problem("P4", "the answer twice", "a second answer is added to the first")


def _side_by_side(case: Case) -> Iterator[Problem]:
    """Two answers that are read at once, event by event, the second of which lacks one: each is what it is alone."""
    if len(case.events) < 2 or not case.capture.stream:
        return
    raw = case.baseline.response.get("raw_finish_reason")
    ends = [leaf.event for leaf in case.leaves if leaf.value == raw][-1:]
    for missing in dict.fromkeys((*ends, len(case.events) - 1)):
        less = [*case.chunks[:missing], *case.chunks[missing + 1 :]]
        alone = case.map_bytes(b"".join(less))
        whole, beside = case.map_at_once(case.chunks, less)
        if not (whole.is_like(case.baseline) and beside.is_like(alone)):
            yield case.problem("P4", "two answers at once", "one is read differently beside the other")
            return


_FOREIGN: Final[dict[str, Any]] = {
    "openai": {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]},
    "openai_responses": {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}]},
    "anthropic": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 1, "output_tokens": 1}},
    "ollama": {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "Hi"}, "eval_count": 1},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP"}],
        "modelVersion": "m", "responseId": "r"},
    "cohere": {"id": "c", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [
        {"type": "text", "text": "Hi"}]}, "usage": {"billed_units": {"input_tokens": 1, "output_tokens": 1}}},
    "nobody": {"crosswalk": "is no provider"},
    "nobody in a list": [{"crosswalk": 1}, None],
    "nobody in a text": "crosswalk",
}  # fmt: skip
"""The least answer of each large dialect, by the provider that it is of."""


def recognizes_its_own(case: Case) -> Iterator[Problem]:
    """P4: it is not certain of what others have sent, and no other provider is certain of this."""
    mapper, ours = case.mapper, {case.mapper.provider, *case.mapper.info.speaks}
    try:
        others = [(name, event) for name, event in _FOREIGN.items() if name not in ours]
        certain = [name for name, event in others if _is_certain(mapper, event)]
        is_known = any(map(mapper.recognizes, case.events[:1]))
    except Exception as error:  # a plugin's own code
        yield case.problem("P4", "detection", f"fails with {type(error).__name__} on what others have sent")
        return
    for name in certain:
        yield case.problem("P4", "detection", f"certain of an answer of {name}")
    signs = registry.signs().get(mapper.provider)
    for event in case.events:
        is_silent = (
            signs is not None and type(event) is dict and not any(sign <= event.keys() for sign in signs)
        )
        if is_silent and _is_certain(mapper, event):
            yield case.problem(
                "P4", "detection", "certain of an event without a key that its entry point names"
            )
            break
    if case.capture.status >= 400 or not is_known:
        return  # an error, or another dialect that the server speaks
    for name in registry.names():
        with suppress(PluginError):
            if name not in ours and _is_certain(registry.mapper(name), case.events[0]):
                yield case.problem("P4", "detection", f"{name} is certain that this is its answer")


def _is_certain(mapper: Mapper, event: Any) -> bool:
    return mapper.recognizes(event) is Recognition.CERTAIN

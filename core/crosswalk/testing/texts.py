"""Checks of texts and words: each unchanged, in one place, and with its meaning."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import orjson

from crosswalk.errors import UnknownEventError
from crosswalk.testing.case import MARKER, NAME, Case, Place, answer, marker_for, occurrences, strings, typed
from crosswalk.testing.perturbation import Leaf, Outcome, Path, at, replaced, scalars, show_path, without
from crosswalk.testing.problems import Problem
from crosswalk.types.json import same_json
from crosswalk.types.usage import Provenance
from crosswalk.types.values import FinishReason

# ----------------------------------------------------------------------------------- texts
# Checks of texts: each unchanged, and in one place.


_REASONING_PATTERN: Final = re.compile(r"reasoning|think|thought", re.IGNORECASE)


def text_as_it_was_sent(case: Case) -> Iterator[Problem]:
    """P4: another text in place of a text shows exactly, capitals, spaces and all, or is refused."""
    for place in _text_places(case):
        marked_outcome = case.marked(place)
        if marked_outcome.error is not None or marked_outcome.response is None:
            continue
        says_reasoning = _says_reasoning(case, place.leaves[0])
        if not holds(marked_outcome, MARKER):
            yield case.problem("P4", place, "another text in its place is not passed on unchanged")
        elif says_reasoning and occurrences(marked_outcome.response["message"].get("content")):
            message = "reasoning is given as the text of the answer"
            yield case.problem("P4", place, message, kind="reasoning became text")
        elif _is_all_reasoning(case) and not says_reasoning and occurrences(marked_outcome.said("reasoning")):
            message = "the text of an answer that ended by itself is given as reasoning"
            yield case.problem("P4", place, message, kind="text became reasoning")
        else:
            yield from _opaque(case, place)
    yield from _equal_pieces(case)
    yield from _joined(case)


def _kinds_of(outcome: Outcome) -> set[str]:
    """Return the kinds of text that hold the marker in *outcome*, none if it is an error."""
    return {kind for kind in _WORDS if outcome.error is None and occurrences(outcome.said(kind))}


def _is_all_reasoning(case: Case) -> bool:
    """Whether the answer ended by itself with only reasoning, and nothing is stated about its text."""
    response, is_stated = case.baseline.response, "text" in (case.capture.says or {})
    kinds = {part["type"] for part in response.get("segments", ())}
    return response["finish_reason"] == "stop" and kinds == {"reasoning"} and not is_stated


def _joined(case: Case) -> Iterator[Problem]:
    """One more item after the last of an array: nothing comes between its text and the one before."""
    if not case.is_answer:
        return
    for place in _text_places(case):
        leaf = place.leaves[0]
        depths = [depth for depth, key in enumerate(leaf.path) if isinstance(key, int)]
        array_depth = max(depths, default=None)
        if array_depth is None or len(place.leaves) > 1 or marker_for(place.value) != MARKER:
            continue
        array = Leaf(leaf.event, leaf.path[:array_depth], None)
        *other_items, last_item = at(replaced(case.events, leaf, MARKER)[leaf.event], array.path)
        changed_outcome = case.map(replaced(case.events, array, [*other_items, last_item, last_item]))
        for text in changed_outcome.said(*_WORDS) if changed_outcome.error is None else ():
            inserted_texts = text.split(MARKER)[1:-1]
            if inserted_texts and inserted_texts[0] not in {"", *strings(case.events)}:
                message = f"between it and the next one, {inserted_texts[0]!r} is put in"
                yield case.problem("P4", place, message)


_WORDS: Final = ("text", "reasoning", "refusal")
_OBJECT_TEXT: Final = '{ "KeLp":1.50, "b" :"\\u00e9\\/", "n":12345678901234567890,  "z":null}'
"""The text of a JSON object that another writer would write in another way."""
_OPAQUE_TEXTS: Final = {
    "  ": "a text of white space",
    "\n": "a line break",
    "0": "a zero",
    "[DONE]": "the end of a stream",
    "null": "a null",
    "\ufeff\u2581Kelp\xa0\x00\x07 \u200b\U0001f469\u200d\u200b": "a text with invisible characters",
    "```\n</s><|im_end|> &lt;b&gt; <think>a</think> \u201cq\u201d 'q' \\u0041 \\n %20 ```\n{}\n```\n\nUser: \n```": (
        "a text of tags, quotes, escapes and fences"
    ),
    f"\r\n\t{'Kelp ' * 14_000}\t\r\n": "a long text with white space around it",
    _OBJECT_TEXT: "a text of JSON",
}
"""Texts that a careless clean-up changes: at a beginning, at an end, as a whole, or inside."""


def _opaque(case: Case, place: Place) -> Iterator[Problem]:
    """A text is opaque: each of these, in the first, the second and the last piece in turn, arrives as it was sent.

    So is a signature, and whatever else ends as base64 may end.
    """
    if place.value.endswith("=") or place.key.lower().endswith("signature"):
        padded = case.map(place.put(case.events, f"{MARKER}=="))
        if padded.error is None and not holds(padded, f"{MARKER}=="):
            message = "a text that ends with == in its place is not passed on unchanged"
            yield case.problem("P4", place, message)
    for leaf in dict.fromkeys((place.leaves[0], place.leaves[-1], *place.leaves[1:2])):
        piece = Place((leaf,))
        marked_outcome = case.marked(piece)
        marker, is_whole = marker_for(leaf.value), marked_outcome.error is None
        marked_text = "".join(marked_outcome.said()) if is_whole else ""
        for text, name in _OPAQUE_TEXTS.items() if marker in marked_text else ():
            is_other_kind = marker != MARKER and text != _OBJECT_TEXT
            if leaf.value.startswith(text) or is_other_kind:
                continue  # a later event that repeats the whole would then continue where this one ended
            changed_outcome = case.map(piece.put(case.events, text))
            text_in_json = orjson.dumps(text).decode()[1:-1]  # as in the arguments of a call
            if changed_outcome.error is None and "".join(changed_outcome.said()) not in {
                marked_text.replace(marker, text),
                marked_text.replace(marker, text_in_json),
            }:
                yield case.problem("P4", leaf, f"{name} in its place is not passed on unchanged")


def _equal_pieces(case: Case) -> Iterator[Problem]:
    """Consecutive pieces of text: if different ones are all passed on, equal ones are, too."""
    for place in case.every_place(str, by_value=False):
        few_leaves = [leaf for leaf in place.leaves if leaf.value and marker_for(leaf.value) == MARKER][:4]
        if len({leaf.value for leaf in few_leaves}) < 2:
            continue
        events = case.events
        for number, leaf in enumerate(few_leaves):
            events = replaced(events, leaf, f"{number}{MARKER}")
        different_outcome = case.map(events)
        equal_outcome = case.map(Place(tuple(few_leaves)).put(case.events, MARKER))
        if different_outcome.error is not None or equal_outcome.error is not None:
            continue
        if occurrences(equal_outcome.said()) < occurrences(different_outcome.said()):
            yield case.problem("P4", place, "the same text again, in its next event, is not passed on")


def _text_places(case: Case) -> list[Place]:
    if case.baseline.error is not None or not case.events:
        return []
    return case.places(str)


def _says_reasoning(case: Case, leaf: Leaf) -> bool:
    """Whether a key on the way to *leaf*, the kind of its holder, or the name of its event marks it as reasoning."""
    parent = at(case.events[leaf.event], leaf.path[:-1])
    names = {next(iter(parent)), "kind", "type"} - {leaf.path[-1]} if isinstance(parent, dict) else ()
    kinds = [kind for name in names if isinstance(kind := parent.get(name), str) and NAME.fullmatch(kind)]
    event_name = case.frames[leaf.event][1] if case.frames else None
    keys = [key for key in leaf.path if isinstance(key, str)]
    return any(map(_REASONING_PATTERN.search, (*keys, *case.words(leaf), *kinds, event_name or "")))


def text_only_once(case: Case) -> Iterator[Problem]:
    """P1: a value in a typed field is not also in the extensions, and no text is given twice.

    Values derived from a stored part may repeat it: citations, verdicts, media and errors.
    """
    for place in _text_places(case):
        marked_outcome = case.marked(place)
        if marked_outcome.error is not None or marked_outcome.response is None:
            continue
        extensions = marked_outcome.extensions
        if occurrences(extensions) and occurrences(_spoken(marked_outcome.response)):
            paths = (path for path, text in scalars(extensions) if isinstance(text, str) and MARKER in text)
            message = f"is in a typed field and in the extensions: {show_path(next(paths))}"
            yield case.problem("P1", place, message)
        sent_count = occurrences(marker_for(place.value)) * len(place.leaves)
        for kind in (one for one in _WORDS if occurrences(marked_outcome.said(one)) > sent_count):
            yield case.problem("P1", place, f"is more than once in the {kind} of the answer")
    yield from _doubled(case)


_DERIVED_TYPES: Final = frozenset({"citation", "safety", "media", "error"})


def _spoken(response: dict[str, Any]) -> dict[str, Any]:
    """Return the typed fields of *response* that hold output, without those that are derived from it."""
    parts = [part for part in response.get("segments", ()) if part["type"] not in _DERIVED_TYPES]
    derived_fields = ("content_filter_results", "refusal")
    remainder = {key: value for key, value in typed(response).items() if key not in derived_fields}
    return {**remainder, "segments": [{**part, "metadata": {}} for part in parts]}


def _doubled(case: Case) -> Iterator[Problem]:
    """Text that grows from event to event, or is said again as a whole, is added up."""
    said = {*strings(case.typed["message"])} if case.is_answer else set()
    for place in case.every_place(str, by_value=False) if said else ():
        pieces = [leaf.value for leaf in place.leaves if leaf.value]
        whole, pairs = "".join(pieces), itertools.pairwise(pieces)
        if len(pieces) > 2 and whole in said and all(b != a and b.startswith(a) for a, b in pairs):
            message = "the text grows from event to event, and is added up"
            yield case.problem("P1", place, message, about="text")
        elif len(pieces) > 1 and whole * 2 in said and any(leaf.value == whole for leaf in case.leaves):
            message = "the text is said again as a whole, and is added to itself"
            yield case.problem("P1", place, message, about="text")


# ----------------------------------------------------------------------------------- kinds
# The check that texts of different kinds, which the captures of a provider show, are not read alike.


def kinds_are_told_apart(case: Case) -> Iterator[Problem]:
    """P1: a text of one kind is not read like a text of another: the word, the event's name or the key for it counts."""
    text_places = {
        (leaf.event, leaf.path) for place in case.places(str) for leaf in place.leaves if _shows(case, leaf)
    }
    yield from _other_kinds(case, text_places)
    yield from _names(case, text_places)
    yield from _keys(case, text_places)


def _shows(case: Case, leaf: Leaf) -> bool:
    """Whether *leaf* is a piece of text, of reasoning or of a refusal."""
    is_said = leaf.value and leaf.value in "\n".join(case.baseline.said(*_WORDS))
    return bool(is_said and _kinds_of(case.marked(Place((leaf,)))))


def _other_kinds(case: Case, text_places: set[tuple[int, Path]]) -> Iterator[Problem]:
    """Another kind of the same place in place of a kind, as in ``{"kind": "say", "text": …}`` or ``["say", …]``."""
    finish_word = case.baseline.response.get("raw_finish_reason")
    finish_paths = {leaf.path for leaf in case.leaves if leaf.value == finish_word}
    for place in case.every_place(str, int):
        if place.path in finish_paths:
            continue  # a later finish word may count for more
        text_path, own_kind = _text_of(place, text_places), _without_numbers(place.value)
        if text_path is None:
            continue
        kinds = _kinds(case, place.path, text_path)
        other_kinds = sorted((kind for kind in kinds if _without_numbers(kind) != own_kind), key=str)
        if not 0 < len(other_kinds) < _MOST_KINDS:
            continue
        unknown_outcome = case.map(place.put(case.events, _UNKNOWN_KINDS[type(place.value)]))
        pair = [answer(one.response) for one in (unknown_outcome, case.baseline) if one.error is None]
        if len(pair) == 2 and pair[0][0] == pair[1][0] and "".join(pair[0][1]) == "".join(pair[1][1]):
            continue  # it does not decide what is read, as the number of a block, with which its pieces are joined
        for other_kind in other_kinds:
            changed_outcome = case.map(place.put(case.events, other_kind))
            if changed_outcome.error is None and same_json(changed_outcome.response, case.baseline.response):
                field = _said_at(case, place.leaves[0].event, text_path)
                yield case.problem("P1", place, _ALIKE.format(other_kind), about=field)
                break


def _said_at(case: Case, event: int, path: Path) -> str:
    """Return what the text at *path* is part of: the text, the reasoning or a refusal."""
    return next(iter(case.fields_at(Leaf(event, path, at(case.events[event], path)))), "text")


def _text_of(place: Place, text_places: set[tuple[int, Path]]) -> Path | None:
    """Return the path of the text after a word: in the object or the row of the word, or inside of it."""
    if not _is_kind(place.value) or any((leaf.event, leaf.path) in text_places for leaf in place.leaves):
        return None
    holder_path = place.path[:-1]
    event_numbers = {leaf.event for leaf in place.leaves}
    text_paths = (
        path
        for event, path in text_places
        if event in event_numbers and path[: len(holder_path)] == holder_path
    )
    return min(text_paths, default=None, key=str)


def _kinds(case: Case, word_path: Path, text_path: Path) -> set[str | int]:
    """Return the words at *word_path* in all captures of this form, of objects and rows with a text at *text_path*."""
    return {
        kind
        for _, events in case.of_this_form()
        for event in events
        for holder in _holders(event, word_path[:-1])
        if _is_text(at(holder, text_path[len(word_path) - 1 :]))
        and _is_kind(kind := at(holder, word_path[-1:]))
    }


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _holders(value: Any, path: Path) -> Iterator[Any]:
    """Yield what is at *path* in *value*, with any number in place of the number of an item."""
    if not path:
        yield value
    elif isinstance(path[0], int):
        for item in value if isinstance(value, list) else ():
            yield from _holders(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _holders(value[path[0]], path[1:])


_KIND_PATTERN: Final = re.compile(r"\S{1,64}")
_UNKNOWN_KINDS: Final[dict[type, str | int]] = {str: "crosswalk", int: 7070707}
_MOST_KINDS: Final = 16
"""More values at one place are not kinds."""
_ALIKE: Final = "{!r}, another kind of this provider, in its place changes nothing: both are read alike"


def _names(case: Case, text_places: set[tuple[int, Path]]) -> Iterator[Problem]:
    """Another name of an event in place of the name of an event with a text."""
    place_by_name = {
        case.frames[event][1]: (event, path) for event, path in sorted(text_places, key=str) if case.frames
    }
    for name, text_place in place_by_name.items():
        other_names = {
            other_name
            for frames, events in case.of_this_form()
            for (_, other_name), event in zip(frames, events, strict=False)
            if other_name not in (None, name) and _is_text(at(event, text_place[1]))
        }
        if name is None or case.map_bytes(case.renamed(name, "crosswalk")).is_like(case.baseline):
            continue  # the name is not read
        for other_name in sorted(other_names):
            changed_outcome = case.map_bytes(case.renamed(name, other_name))
            if changed_outcome.error is None and same_json(changed_outcome.response, case.baseline.response):
                message = _ALIKE.format(other_name)
                yield case.problem("P1", f"events named {name}", message, about=_said_at(case, *text_place))
                break


def _keys(case: Case, text_places: set[tuple[int, Path]]) -> Iterator[Problem]:
    """The key of another text, of the same object, in place of a key: ``{"thought": …, "text": …}``."""
    for event, path in sorted(text_places, key=str):
        for _, other_path in (one for one in text_places if one != (event, path) and one[0] == event):
            value = at(case.events[event], path)
            is_same = at(case.events[event], other_path) == value
            if other_path[:-1] != path[:-1] or isinstance(path[-1], int) or is_same:
                continue
            other_leaf = Leaf(event, other_path, None)
            events_alone = without(case.events, other_leaf)
            moved_events = replaced(without(events_alone, Leaf(event, path, None)), other_leaf, value)
            outcome_alone, moved_outcome = case.map(events_alone), case.map(moved_events)
            if outcome_alone.error is None and same_json(outcome_alone.response, moved_outcome.response):
                message = f"under the key {other_path[-1]!r} it is read the same way"
                yield case.problem("P1", Leaf(event, path, value), message)


def _without_numbers(kind: str | int) -> str | int:
    """Return *kind* without its numbers, which count: ``/out/0/say`` is of the kind of ``/out/1/say``."""
    return re.sub(r"[0-9]+", "", kind) if isinstance(kind, str) else kind


def _is_kind(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and _KIND_PATTERN.fullmatch(value) is not None)


# ----------------------------------------------------------------------------------- words
# Checks of words such as finish reasons: unknown words raise, and known ones keep their meaning.


def unknown_words_raise(case: Case) -> Iterator[Problem]:
    """P4: an unknown finish word, or an unknown name of an event or of a part, is an error, or marked."""
    baseline_answer = answer(case.baseline.response)
    for place in case.places(str, int):
        if _is_finish(case, place):
            yield from _finish_words(case, place, dict.fromkeys(_unknown_words(place.value), _WHOLE_REASONS))
        if not isinstance(place.value, str) or not _is_name(place):
            continue
        changed_outcome = case.marked(place)
        is_kept = changed_outcome.error is not None or occurrences(typed(changed_outcome.response))
        if not is_kept and answer(changed_outcome.response) != baseline_answer:
            message = "an unknown word in its place changes the answer without an error"
            yield case.problem("P4", place, message)
    for name in dict.fromkeys(name for _, name in case.frames if name is not None):
        changed_outcome = case.map_bytes(case.renamed(name, "crosswalk"))
        if changed_outcome.error is None and answer(changed_outcome.response) != baseline_answer:
            message = "with an unknown name they change the answer without an error"
            yield case.problem("P4", f"events named {name}", message, about="kind")
        cause = changed_outcome.cause
        if isinstance(cause, UnknownEventError) and cause.event_type is None:
            message = "the error for an unknown name does not name it"
            yield case.problem("P4", f"events named {name}", message, about="kind")
    yield from _unknown_event(case)


def _unknown_event(case: Case) -> Iterator[Problem]:
    """One more event, of a form that nobody knows, is refused, or stays in the extensions."""
    middle_index = len(case.events) // 2
    frame = case.frames[middle_index]
    if not case.capture.stream or frame[1] in case.mapper.info.text_events:
        return
    frames = [*case.frames[:middle_index], frame, *case.frames[middle_index:]]
    first_events, last_events = case.events[:middle_index], case.events[middle_index:]
    events = [*first_events, {"crosswalk": MARKER}, *last_events]
    changed_outcome = case.map_bytes(case.reframed(frames, [*first_events, None, *last_events])(events))
    if changed_outcome.error is None and not occurrences(changed_outcome.response):
        yield case.problem("P1", f"event {middle_index + 1} unknown", "lost: it is neither refused nor kept")


def known_words_keep_their_meaning(case: Case) -> Iterator[Problem]:
    """P4: a finish word that has the same meaning everywhere has it here too, or raises."""
    for place in case.places(str):
        if _is_finish(case, place):
            spell = str.upper if place.value.isupper() else str
            words = {spell(word): _WHOLE_REASONS - reasons for word, reasons in _KNOWN_REASONS.items()}
            yield from _finish_words(case, place, words)


def _is_finish(case: Case, place: Place) -> bool:
    finish_word = case.baseline.response.get("raw_finish_reason")
    return bool(finish_word) and str(place.value) == finish_word


def _unknown_words(word: str | int) -> list[Any]:
    """Return words that mean nothing, also some that are nearly *word*, or an unknown code."""
    if isinstance(word, int):
        return [_UNKNOWN_CODE]
    words = [MARKER, f"{word}_crosswalk", f"crosswalk_{word}", f" {word}\n"]
    if word.lower() not in tuple(FinishReason):  # these are read in any case
        words.append(word.swapcase() if word.upper() != word.lower() else f"{word}.")
    return words


def _finish_words(
    case: Case, place: Place, words: Mapping[Any, Collection[FinishReason]]
) -> Iterator[Problem]:
    """Each of *words* in place of the finish word is not read as one of its reasons, and is passed on unchanged."""
    baseline = case.baseline.response
    for word, reasons in words.items():
        changed_outcome = case.map(place.put(case.events, word))
        response, is_refused = changed_outcome.response, changed_outcome.error is not None
        if is_refused or changed_outcome.provenance.get("finish_reason") == Provenance.UNMAPPED:
            continue
        finish, reported_word = response["finish_reason"], response.get("raw_finish_reason")
        if finish in reasons and reported_word == str(word):
            message = f"the finish word {word!r} is read as {finish}"
            yield case.problem("P4", place, message, about="finish_reason")
        # A count that equals the code, or the number of a choice, is not the word.
        is_same = word == _UNKNOWN_CODE and reported_word == baseline.get("raw_finish_reason")
        is_other = is_same or response["usage"] != baseline["usage"]
        if reasons is _WHOLE_REASONS and not holds(changed_outcome, str(word)) and not is_other:
            message = f"the finish word {word!r} is passed on as {reported_word!r}"
            yield case.problem("P4", place, message, about="finish_reason")


def holds(outcome: Outcome, text: str) -> bool:
    """Whether *text* is in a text of the response or of the deltas."""
    return bool(occurrences(outcome.response, text) or occurrences(outcome.deltas, text))


_UNKNOWN_CODE: Final = 7070707
_WHOLE_REASONS: Final = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH})
_GOOD_REASONS: Final = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS})
_KNOWN_REASONS: Final[dict[str, frozenset[FinishReason]]] = {
    **dict.fromkeys(("stop", "end_turn", "tool_calls", "tool_use"), _GOOD_REASONS),
    **dict.fromkeys(("length", "max_tokens"), frozenset({FinishReason.LENGTH})),
    **dict.fromkeys(("content_filter", "safety", "error", "cancelled"), frozenset()),
}
"""Words with the same meaning for all providers, with what they mean of the reasons of whole answers."""


def _is_name(place: Place) -> bool:
    """Whether it is a word at the top of an event, as the name of an event is. Unknown parts inside one may be kept."""
    return len(place.path) == 1 and NAME.fullmatch(place.value) is not None

"""Checks of words such as finish reasons: unknown words raise, and known ones keep their meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from crosswalk.testing.case import MARKER, NAME, Case, Place, answer, occurrences, typed
from crosswalk.testing.problems import Problem
from crosswalk.types.usage import Provenance
from crosswalk.types.values import FinishReason


def unknown_words_raise(case: Case) -> Iterator[Problem]:
    """P4: an unknown finish word, or an unknown name of an event or of a part, is an error, or marked."""
    if not case.is_answer:
        return
    before = answer(case.baseline.response)
    raw = case.baseline.response.get("raw_finish_reason")
    for location in case.places(str):
        yield from _almost_known(case, location) if raw and location.value == raw else ()
        after = case.marked(location)
        if after.error is not None:
            continue
        response = after.response
        finish = response["finish_reason"]
        if MARKER in str(response.get("raw_finish_reason")):
            if finish in _WHOLE and not _is_unmapped(response):
                yield case.problem(
                    "P4", location, f"an unknown finish word is read as {finish}", about="finish_reason"
                )
        elif _is_name(location) and answer(response) != before and not occurrences(typed(response)):
            yield case.problem(
                "P4", location, "an unknown word in its place changes the answer without an error"
            )
    for location in case.places(int) if raw else ():
        after = case.map(location.put(case.events, _CODE)) if str(location.value) == raw else case.baseline
        if str(_CODE) in str(after.response) and after.error is None and not _is_unmapped(after.response):
            finish = after.response["finish_reason"]
            if finish in _WHOLE and after.response.get("raw_finish_reason") == str(_CODE):
                yield case.problem(
                    "P4", location, f"an unknown finish code is read as {finish}", about="finish_reason"
                )
    for name in dict.fromkeys(name for _, name in case.frames if name is not None):
        after = case.map_bytes(case.renamed(name, "crosswalk"))
        if after.error is None and answer(after.response) != before:
            yield case.problem(
                "P4",
                f"events named {name}",
                "with a name that nobody knows they change the answer without an error",
                about="kind",
            )


_CODE: Final = 7070707


def _almost_known(case: Case, place: Place) -> Iterator[Problem]:
    """A finish word that is nearly a known one is taken for it, or changed into one before it is reported."""
    word = place.value
    near = [f"{word}_crosswalk", f"crosswalk_{word}", f" {word}\n"]
    if word.lower() not in tuple(FinishReason):  # these are read in any case
        near.append(word.swapcase() if word.upper() != word.lower() else f"{word}.")
    for payload in near:
        after = case.map(place.put(case.events, payload))
        if after.error is not None or _is_unmapped(after.response):
            continue
        finish, raw = after.response["finish_reason"], after.response.get("raw_finish_reason")
        if finish in _WHOLE and raw == payload:
            yield case.problem(
                "P4", place, f"the unknown finish word {payload!r} is read as {finish}", about="finish_reason"
            )
        elif not occurrences(after.response, payload) and not occurrences(after.deltas, payload):
            yield case.problem(
                "P4", place, f"the finish word {payload!r} is passed on as {raw!r}", about="finish_reason"
            )


_WHOLE: Final = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH})


def _is_name(place: Place) -> bool:
    """Whether it is a word at the top of an event, as the name of an event is. Unknown parts inside one may be kept."""
    return len(place.path) == 1 and NAME.fullmatch(place.value) is not None


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
"""Words with the same meaning for all providers, and the reasons that they never mean."""


def known_words_keep_their_meaning(case: Case) -> Iterator[Problem]:
    """P4: a finish word that has the same meaning everywhere has it here too, or raises."""
    if not case.is_answer:
        return
    raw = case.baseline.response.get("raw_finish_reason")
    for location in case.places(str):
        for word in _NEVER if location.value == raw else ():
            encoded = word.upper() if raw.isupper() else word
            after = case.map(location.put(case.events, encoded))
            if after.error is not None or after.response.get("raw_finish_reason") != encoded:
                continue
            if after.response["finish_reason"] in _NEVER[word] and not _is_unmapped(after.response):
                yield case.problem(
                    "P4",
                    location,
                    f"{encoded} is read as {after.response['finish_reason']}",
                    about="finish_reason",
                )


def _is_unmapped(response: dict[str, Any]) -> bool:
    return bool(response["metadata"].get("provenance", {}).get("finish_reason") == Provenance.UNMAPPED)

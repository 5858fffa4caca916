"""The promises P1 to P5 and P8, as functions that check one capture and report what is broken or unproven."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.codec import from_json, to_json
from crosswalk.errors import CrosswalkError
from crosswalk.mapping.fields import FieldRow, same
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import Mapper
from crosswalk.testing import answers, evidence, lossless, pairing, requests, texts, values
from crosswalk.testing.captures import Capture, Write, remedy_of, stated_differences, taken_for, written
from crosswalk.testing.case import Case, Tally, reader_options
from crosswalk.testing.perturbation import MISSING, Leaf, at, outcome, replaced, show_path
from crosswalk.testing.problems import EXCEPTIONS, SHARED_STATE, KnownException, Problem, read_exceptions
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance

# ---------------------------------------------------------------------------------- checks
# The promises P1 to P5 and P8, as functions that check one capture and report what is broken.
#
# ``ProviderConformance`` asserts that they report nothing. ``crosswalk check`` prints their reports.


def _read(case: Case) -> tuple[list[ResponseDelta], ChatResponse]:
    reader = Reader(case.mapper, reader_options(case.capture, keep_raw=True))
    deltas = [*reader.read(case.capture.body), *reader.finish()]
    return deltas, reader.response()


def deterministic(case: Case) -> Iterator[Problem]:
    """P5: the same bytes give the same canonical JSON, which reads back to the same value."""
    try:
        deltas, response = _read(case)
    except CrosswalkError:
        return  # errors are compared under P3
    text = to_json(response, include_raw=True)
    if text != to_json(_read(case)[1], include_raw=True):
        message = "the same bytes give different canonical JSON; what one answer needs belongs in state.data"
        yield case.problem("P5", "twice", message, kind=SHARED_STATE)
    restored = from_json(text, ChatResponse)
    if to_json(restored, include_raw=True) != text or not restored.same_content(response):
        yield case.problem("P5", "round trip", "canonical JSON does not read back to the same value")
    for delta in deltas:
        if from_json(to_json(delta), ResponseDelta) != delta:
            yield case.problem("P5", f"delta {delta.index}", "does not read back to the same value")


def as_stated(case: Case) -> Iterator[Problem]:
    """P4: the response agrees with the statement about the capture."""
    statement = case.capture.says
    if statement is None:
        return
    capture = case.capture
    read = outcome(case.mapper, [], options=reader_options(capture), as_bytes=lambda _: capture.body)
    response = None if read.response is None else from_json(written(read.response), ChatResponse)
    error_name, _, message = (read.error or "").partition(": ")
    differences = stated_differences(statement, response, error_name or None, message)
    facts = [fact for fact, _ in differences]
    for fact, difference in differences:
        kind = "" if response is None else taken_for(fact, statement, response, facts)
        yield case.problem("P4", fact, f"{difference}; {remedy_of(fact)}", kind=kind)


def _problems_of(name: str, case: Case) -> list[Problem]:
    """Return the problems that a check finds. Whatever a plugin does, the kit goes on."""
    problems: list[Problem] = []
    known_failures = {*case.failures}
    try:
        problems.extend(CHECKS[name](case) if case.is_answer or CHECKS[name] not in _OF_ANSWERS else ())
    except Exception as error:
        message = f"the check cannot go on: {type(error).__name__}"
        problems.append(case.problem("P4", name, message))
    for failure, message in case.failures.items():
        if failure not in known_failures and not any(message in problem.message for problem in problems):
            problems.append(case.problem("P4", "the plugin's code", f"on a changed answer: {message}"))
    return [attrs.evolve(problem, check=name) for problem in problems]


def rows_hold(case: Case) -> Iterator[Problem]:
    """P4: a row that a plugin states is read as what it says, also where no recording shows it.

    Rows of texts and counts are filled, and in a whole body those of the identity, each without the others. A place that the
    answer has without its rows is not tried: something else says it, too. The other laws are tried on one body in which
    each place is filled.
    """
    told = [(show_path(leaf.path), leaf) for leaf in case.leaves if leaf.value not in (None, "")]
    bodies = [one for one in case.others if not one.stream and one.status < 400]
    kinds = ("text", "reasoning", "refusal", *(("id", "model") if len(case.events) == 1 else ()))
    for rows in evidence.rows_of(case.mapper):
        places = {path: row.place for path, row in rows.items() if row.place in kinds or _is_count(row.place)}
        said = {
            path: [leaf for leaf in _leaves_of_row(path, told) if _fits(case.events, leaf, path, rows)]
            for path in places
        }
        spoken = [leaf for path in places if places[path] == "text" for leaf in said[path]]
        if not spoken:
            continue
        silent_events = case.events
        for leaf in chain.from_iterable(said.values()):
            silent_events = replaced(silent_events, leaf, None)
        silent, first_leaves = case.map(silent_events), dict[str, Leaf]()
        if silent.response is None or _said(silent.response, "text"):
            continue
        counted = {leaf.event for path in places if _is_count(places[path]) for leaf in said[path]}
        # Several reports are sums, and what something else counts may replace a report.
        are_sure = len(counted) < 2 and not any(
            _said(silent.response, place) for place in places.values() if _is_count(place)
        )
        for amount, (path, place) in enumerate(places.items(), 7_070_001):
            is_count = _is_count(place)
            if _said(silent.response, place) or (is_count and not are_sure):
                continue
            value = amount if is_count else f"reed {amount}"
            text = said[path][-1] if said[path] else max(spoken, key=attrgetter("event"))
            event = max(counted) if is_count and counted else text.event
            leaf = Leaf(event, said[path][-1].path if said[path] else _keys(path, text.path), value)
            if leaf.path[1:] and at(case.events[event], leaf.path[:1]) is MISSING:
                continue  # another form of event has it
            filled = case.map(replaced(silent_events, leaf, value))
            if filled.error is None and str(value) not in _said(filled.response, place):
                message = f"its row says {place}, and it is not read as that"
                yield case.problem("P4", leaf, message, about=place)
            first_leaves.setdefault(place, leaf)
        full_events = silent_events
        for leaf in first_leaves.values():
            full_events = replaced(full_events, leaf, leaf.value)
        full_case = case.of(case.reframed(case.frames, case.events)(full_events))
        # No server may say all of it at once.
        for law in _LAWS_OF_ROWS if case.capture in bodies[:1] and full_case.is_answer else ():
            yield from law(full_case)


def _is_count(place: str) -> bool:
    return place.startswith("usage.") and place != "usage.total_tokens"  # which is a sum


def _leaves_of_row(path: str, told: Iterable[tuple[str, Leaf]]) -> list[Leaf]:
    pattern = re.compile(re.escape(path).replace(r"\[\]", r"\[\d+\]"))
    return [leaf for leaf_path, leaf in told if pattern.fullmatch(leaf_path)]


def _fits(events: list[Any], leaf: Leaf, path: str, rows: Mapping[str, FieldRow]) -> bool:
    """Whether the object of *leaf*, at the *path* of one of *rows*, has their constants, such as that of its type."""
    for other, row in rows.items():
        if row.place.startswith("always ") and other.rpartition(".")[0] == path.rpartition(".")[0]:
            value = at(events[leaf.event], (*leaf.path[:-1], other.rpartition(".")[2]))
            if value is not MISSING and row.place != same(value).place:
                return False
    return True


_LAWS_OF_ROWS: Final = (
    *(lossless.nothing_lost, texts.text_only_once, texts.text_as_it_was_sent),
    values.counts_are_the_providers,
)


def _said(response: dict[str, Any], place: str) -> str:
    """What *response* has where the row of *place* says, in any of its choices, ``""`` if it is made up, 0 or missing."""
    choices = [response, *response.get("alternatives", ())]
    if place in ("text", "reasoning", "refusal"):
        parts = [part for one in choices for part in one.get("segments", ()) if part["type"] == place]
        return "".join([*(part["content"] for part in parts), *(one.get(place) or "" for one in choices)])
    usage, mark = response["usage"], response["metadata"].get("provenance", {}).get(place)
    value = {**response, **usage, **usage.get("details", {})}.get(place.rpartition(".")[2])
    return str(value or "") if mark not in (Provenance.SYNTHETIC, Provenance.ABSENT) else ""


def _keys(path: str, text_path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the keys of the *path* of a row, next to the text at *text_path* or in the first item of each array."""
    holder, _, key = path.rpartition(".")
    if holder and "[" not in key and re.sub(r"\[\d+\]", "[]", show_path(text_path[:-1])) == holder:
        return (*text_path[:-1], key)
    keys = re.findall(r"\[\d*\]|[^.\[\]]+", path)
    return tuple(int(key[1:-1] or 0) if key[0] == "[" else key for key in keys)


_Check: TypeAlias = Callable[[Case], Iterator[Problem]]
_CHECKS_BY_PROMISE: Final[dict[str, tuple[_Check, ...]]] = {
    "as stated": (as_stated, requests.requests_as_stated),
    "nothing lost": (lossless.nothing_lost, evidence.kinds_are_read, texts.text_only_once,
        texts.kinds_are_told_apart),
    "framing does not matter": (pairing.framing_does_not_matter, pairing.text_paths_hold, pairing.own_framing_is_exact),
    "never silently wrong": (lossless.never_silently_wrong, answers.choices_are_told_apart, texts.text_as_it_was_sent,
        texts.unknown_words_raise, texts.known_words_keep_their_meaning, answers.output_shows, values.digits_kept,
        values.times_kept, values.arguments_told_apart, answers.answers_its_request, answers.errors_show,
        answers.failures_are_errors, answers.one_answer_at_a_time, answers.recognizes_its_own,
        evidence.declarations_hold, rows_hold, requests.requests_say_all),
    "deterministic": (deterministic,),
    "nothing invented": (values.nothing_invented, values.nothing_filled_in, values.counts_are_the_providers,
        values.parts_within_wholes),
}  # fmt: skip

_OF_ANSWERS: Final = {
    texts.kinds_are_told_apart, texts.unknown_words_raise, texts.known_words_keep_their_meaning, answers.output_shows,
    values.digits_kept, values.times_kept, rows_hold, values.nothing_filled_in, values.counts_are_the_providers,
    values.parts_within_wholes, answers.one_answer_at_a_time,
}  # fmt: skip
"""The checks of whole answers, which nothing else can pass or fail."""


def _name_of(check: _Check) -> str:
    return check.__name__.replace("_", " ").replace("providers", "provider's")


CHECKS: Final = {_name_of(check): check for checks in _CHECKS_BY_PROMISE.values() for check in checks}
"""Every check by its name."""

PROMISES: Final = {promise: tuple(map(_name_of, checks)) for promise, checks in _CHECKS_BY_PROMISE.items()}
"""The promises P1, P3, P4, P5 and P8, each with the names of its checks."""


def load_exceptions(folder: Path | str) -> list[KnownException]:
    """Return the exceptions in the file ``EXCEPTIONS`` of *folder*, or none if there is no file.

    Raises:
        ConfigurationError: it cannot be read, or a line in it is not an exception.
    """
    file = Path(folder) / EXCEPTIONS
    return read_exceptions(file, CHECKS) if file.exists() else []


def check_capture(
    mapper: Mapper,
    capture: Capture,
    *,
    sample: int | None = 40,
    checks: Iterable[str] = tuple(CHECKS),
    tally: Tally | None = None,
    exceptions: Collection[str] = (),
    write: Write | None = None,
    others: Sequence[Capture] = (),
) -> list[Problem]:
    """Check the promises on one capture.

    Args:
        mapper: the provider.
        capture: the recorded answer.
        sample: the largest number of leaves and cuts to try, the same ones every time, or ``None`` for all.
        checks: names from :data:`CHECKS`.
        tally: counts the trials, or ``None`` for no count.
        exceptions: findings to leave out, as ``CHECK: PATH``, the path of a leaf without the numbers of items, or as
            ``CHECK: CAPTURE``: ``"text only once: candidates[].citation.text"``.
        write: writes a frame of the provider's own framing, to try its decoder with changed events.
        others: all captures of the provider. They show which kinds of texts there are.

    Raises:
        ConfigurationError: one of *exceptions* is not an exception.

    Returns:
        The broken promises, or none if all hold. If the provider refuses the whole capture, that is the only one.
    """
    case = Case(mapper, capture, sample, tally if tally is not None else Tally(), write, others)
    names = list(checks)
    known_exceptions = [KnownException.parsed(text, "", CHECKS) for text in exceptions]
    if case.refusal is not None and capture.says and capture.says.get("raises"):
        return [attrs.evolve(problem, check="as stated") for problem in as_stated(case)]
    if case.refusal is not None:
        problem = case.problem("P4", "as it is", case.refusal)
        return [attrs.evolve(problem, check=name) for name in names if name == "never silently wrong"]
    short_case = case.shortened()
    cases = {"as stated": case}
    problems = [problem for name in names for problem in _problems_of(name, cases.get(name, short_case))]
    return [problem for problem in problems if not any(one.covers(problem) for one in known_exceptions)]

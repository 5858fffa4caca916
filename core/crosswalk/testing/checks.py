"""The promises P1 to P5 and P8, as functions that check one capture and report what is broken or unproven."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from crosswalk.codec import from_json, to_json
from crosswalk.errors import CrosswalkError
from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.answers import (
    answers_its_request,
    errors_show,
    failures_are_errors,
    null_erases_nothing,
    one_answer_at_a_time,
    output_shows,
    recognizes_its_own,
)
from crosswalk.testing.captures import Capture, Write, stated_differences, written
from crosswalk.testing.case import Case, Tally, reader_options
from crosswalk.testing.lossless import never_silently_wrong, nothing_lost
from crosswalk.testing.pairing import (
    framing_does_not_matter,
    normalized,
    own_framing_is_exact,
    text_paths_hold,
)
from crosswalk.testing.perturbation import EXCEPTIONS, KnownException, Problem, outcome, read_exceptions
from crosswalk.testing.texts import (
    kinds_are_told_apart,
    known_words_keep_their_meaning,
    text_as_it_was_sent,
    text_only_once,
    unknown_words_raise,
)
from crosswalk.testing.values import (
    arguments_told_apart,
    counts_are_the_providers,
    digits_kept,
    nothing_filled_in,
    nothing_invented,
    parts_within_wholes,
    times_kept,
)
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse

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
        yield case.problem("P5", "twice", "the same bytes give different canonical JSON")
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
    read_outcome = outcome(case.mapper, [], options=reader_options(capture), as_bytes=lambda _: capture.body)
    response = (
        None if read_outcome.response is None else from_json(written(read_outcome.response), ChatResponse)
    )
    error_name, _, message = (read_outcome.error or "").partition(": ")
    for fact, difference in stated_differences(statement, response, error_name or None, message):
        yield case.problem("P4", fact, difference)


_CHECKS_BY_PROMISE: Final[dict[str, dict[str, Callable[[Case], Iterator[Problem]]]]] = {
    "as stated": {"as stated": as_stated},
    "nothing lost": {
        "nothing lost": nothing_lost,
        "text only once": text_only_once,
        "null erases nothing": null_erases_nothing,
        "kinds are told apart": kinds_are_told_apart,
    },
    "framing does not matter": {
        "framing does not matter": framing_does_not_matter,
        "text paths hold": text_paths_hold,
        "own framing is exact": own_framing_is_exact,
    },
    "never silently wrong": {
        "never silently wrong": never_silently_wrong,
        "text as it was sent": text_as_it_was_sent,
        "unknown words raise": unknown_words_raise,
        "known words keep their meaning": known_words_keep_their_meaning,
        "output shows": output_shows,
        "digits kept": digits_kept,
        "times kept": times_kept,
        "arguments told apart": arguments_told_apart,
        "answers its request": answers_its_request,
        "errors show": errors_show,
        "failures are errors": failures_are_errors,
        "one answer at a time": one_answer_at_a_time,
        "recognizes its own": recognizes_its_own,
    },
    "deterministic": {"deterministic": deterministic},
    "nothing invented": {
        "nothing invented": nothing_invented,
        "nothing filled in": nothing_filled_in,
        "counts are the provider's": counts_are_the_providers,
        "parts within wholes": parts_within_wholes,
    },
}

CHECKS: Final = {name: check for checks in _CHECKS_BY_PROMISE.values() for name, check in checks.items()}
"""Every check by its name."""

PROMISES: Final = {promise: tuple(checks) for promise, checks in _CHECKS_BY_PROMISE.items()}
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
    problems = [attrs.evolve(problem, check=name) for name in names for problem in CHECKS[name](case)]
    return [problem for problem in problems if not any(one.covers(problem) for one in known_exceptions)]


# -------------------------------------------------------------------------------- unproven
# The fields that a look-alike of OpenAI maps by inheritance or declaration, without a capture that shows them.
#
# Such a field is not wrong, but nothing proves that it is right: the server may have another name for it.


_Shows = Callable[[dict[str, Any]], Any]


def _segment(kind: str) -> _Shows:
    return lambda response: any(one["type"] == kind for one in response.get("segments", ()))


def _count(name: str) -> _Shows:
    return lambda response: response["usage"].get(name)


_FIELD_TESTS: Final[dict[str, _Shows]] = {
    "reasoning": _segment("reasoning"),
    "refusal": _segment("refusal"),
    "tool calls": lambda response: response["message"].get("tool_calls"),
    "log probabilities": lambda response: response.get("logprobs"),
    "cached tokens": _count("cached_tokens"),
    "reasoning tokens": _count("reasoning_tokens"),
}


def unproven(mapper: Mapper, captures: Iterable[Capture]) -> list[str]:
    """Return the typed fields and own finish words of *mapper*, an ``OpenAIChatDialect``, that no capture shows.

    Empty for any other plugin, because the fields that it maps are not declared.
    """
    dialect = getattr(mapper.map_delta, "__self__", None)
    if not isinstance(dialect, OpenAIChatDialect):
        return []
    snapshots = [normalized(mapper, capture) for capture in captures]
    responses = [one.get("response") or one.get("partial") or _EMPTY_RESPONSE for one in snapshots]
    finish_words = {one.get("raw_finish_reason") for one in responses}
    own_words = [word for word in dialect.finish_reasons if word not in OpenAIChatDialect.finish_reasons]
    return [
        *(name for name, shows in _FIELD_TESTS.items() if not any(map(shows, responses))),
        *(f"the finish word {word!r}" for word in own_words if word not in finish_words),
    ]


_EMPTY_RESPONSE: Final[dict[str, Any]] = {"message": {}, "usage": {}}

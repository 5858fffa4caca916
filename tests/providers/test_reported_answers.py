"""Answers as users reported them, made small: each with the outcome that its vendor's documentation wants.

They are read whole, event by event and byte by byte, which gives the same response.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pytest

from crosswalk import ChatResponse, MappingError, SegmentType, normalize, normalize_stream, to_json
from crosswalk.types import CitationRef

LINES: Final = Path(__file__).with_name("reported_answers.jsonl").read_text("utf-8").splitlines()
CASES: Final[list[dict[str, Any]]] = [json.loads(line) for line in LINES]
Outcome = tuple[ChatResponse | None, MappingError | None]


def outcomes(case: Mapping[str, Any]) -> Iterator[Outcome]:
    """The response and the error of *case*, read in each way."""
    pieces = [piece.encode() for piece in case.get("stream", ())] or [json.dumps(case["body"]).encode()]
    provider, status, whole = case["provider"], case.get("status", 200), b"".join(pieces)

    def bytewise() -> Iterator[bytes]:
        return (whole[place : place + 1] for place in range(len(whole)))

    for read in (
        lambda: normalize(whole, provider, status=status),
        lambda: normalize_stream(pieces, provider, status=status).until_done(),
        lambda: normalize_stream(bytewise(), provider, status=status).until_done(),
    ):
        try:
            yield read(), None
        except MappingError as error:
            yield error.partial, error


def calls(response: ChatResponse) -> list[list[Any]]:
    return [
        [call.id, call.name, call.parsed() if call.has_valid_arguments else call.arguments]
        for call in response.tool_calls
    ]


def media(response: ChatResponse) -> list[list[Any]]:
    parts = [part for part in response.segments if part.type is SegmentType.MEDIA]
    return [[part.content, part.metadata.thawed()] for part in parts]


def citations(response: ChatResponse) -> list[str | None]:
    notes = [note for part in response.segments for note in part.annotations]
    return [note.source for note in notes if isinstance(note, CitationRef)]


VALUES: Final[Mapping[str, Callable[[ChatResponse], Any]]] = {
    "text": lambda response: response.text,
    "reasoning": lambda response: response.reasoning,
    "finish": lambda response: response.finish_reason,
    "raw_finish": lambda response: response.raw_finish_reason,
    "incomplete": lambda response: response.incomplete_reason,
    "complete": lambda response: response.is_complete,
    "id": lambda response: response.id,
    "model": lambda response: response.metadata.model_id,
    "cost": lambda response: response.usage.cost and str(response.usage.cost.amount),
    "tools": calls,
    "media": media,
    "citations": citations,
}
"""What of a response each word of a case is about."""


def differences(
    case: Mapping[str, Any], response: ChatResponse | None, error: MappingError | None
) -> list[str]:
    """What of the outcome is not as *case* wants it."""
    wanted = dict(case["wanted"])
    found = []
    raises, says = wanted.pop("raises", None), wanted.pop("says", "")
    if (None if error is None else type(error).__name__) != raises or says not in str(error or ""):
        found.append(f"raises: {error!r}")
    holds = wanted.pop("holds", None)
    if not wanted and holds is None:
        return found
    if response is None:
        return [*found, "no response"]
    if holds is not None and holds not in to_json(response).decode():
        found.append(f"holds: {holds}")
    for name, value in wanted.pop("usage", {}).items():
        if attrgetter(name)(response.usage) != value:
            found.append(f"usage.{name}: {attrgetter(name)(response.usage)}")
    failure = wanted.pop("error", {})
    if failure:
        info = response.error_info
        if (
            info is None
            or info.kind != failure["kind"]
            or info.retryable is not failure.get("retryable", info.retryable)
        ):
            found.append(f"error: {info!r}")
        elif failure.get("message", "") not in info.message:
            found.append(f"message: {info.message}")
    return found + [
        f"{name}: {got}" for name, value in wanted.items() if (got := VALUES[name](response)) != value
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_reported_answer_is_read_as_its_vendor_means_it(case: Mapping[str, Any]) -> None:
    results = list(outcomes(case))
    wrong = [difference for result in results for difference in differences(case, *result)]
    assert not wrong


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_reported_answer_is_the_same_in_pieces_of_any_length(case: Mapping[str, Any]) -> None:
    whole, *others = [
        (None if response is None else response.text, None if error is None else type(error))
        for response, error in outcomes(case)
    ]
    assert all(other == whole for other in others)


def test_every_case_has_a_name_of_its_own_and_a_source() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert all(case["source"] for case in CASES)

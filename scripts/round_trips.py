"""Measures what conversions keep of the recorded answers: ``python scripts/round_trips.py``.

Every recorded body of Chat Completions, Responses and Messages in ``tests/captures`` is read and written back from
canonical JSON (its self-return), and is converted to each other format and back. A leaf is kept if the body that comes back
has the same value at the same path. Streams are read, written in their own format and read again, and the leaves of the two
canonical answers are compared. Empty lists and objects are leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from crosswalk import ChatResponse, CrosswalkError, from_json, normalize, normalize_stream, to_json
from crosswalk.convert import WireForm, convert, convert_stream
from crosswalk.formats.writing import form_of_body, source_form
from crosswalk.testing import Capture, load_captures
from crosswalk.types import load_json

__all__ = ["Share", "leaves", "measure", "recorded"]

CAPTURES: Final = Path(__file__).parents[1] / "tests/captures"
FORMATS: Final = (WireForm.OPENAI_CHAT, WireForm.OPENAI_RESPONSES, WireForm.ANTHROPIC, WireForm.GEMINI)


@attrs.define
class Share:
    """How much of some answers came back.

    Attributes:
        answers: the number of answers.
        identical: those of which every leaf came back, and nothing besides.
        leaves: the number of leaves.
        same: those that came back with the same value.
    """

    answers: int = 0
    identical: int = 0
    leaves: int = 0
    same: int = 0

    def add(self, before: Any, after: Any) -> None:
        """Compare one answer with what came back."""
        old, new = dict(leaves(before)), dict(leaves(after))
        self.answers += 1
        self.identical += old == new
        self.leaves += len(old)
        self.same += sum(path in new and new[path] == value for path, value in old.items())

    def __str__(self) -> str:
        share = 100 * self.same / self.leaves
        return f"{share:6.2f} % of {self.leaves:6} leaves, {self.identical:3} of {self.answers:3} identical"


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, tuple[type, Any]]]:
    """The leaves of *value*, each with its path and its type."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{place}]")
    else:
        yield path, (type(value), value)


def recorded() -> Iterator[tuple[str, Capture]]:
    """The recorded answers that are not errors, each with its provider."""
    for folder in sorted(CAPTURES.iterdir()):
        for capture in load_captures(folder) if folder.is_dir() else ():
            if capture.status == 200:
                yield folder.name, capture


def measure() -> dict[str, Share]:
    """The figures, by what was done."""
    shares: defaultdict[str, Share] = defaultdict(Share)
    for provider, capture in recorded():
        with suppress(CrosswalkError):
            if capture.body.lstrip().startswith(b"{") and capture.body.count(b"\n{") == 0:
                _measure_body(provider, capture.body, shares)
            else:
                _measure_stream(provider, capture.body, shares)
    return dict(sorted(shares.items()))


def _measure_body(provider: str, body: bytes, shares: defaultdict[str, Share]) -> None:
    sent = load_json(body)
    form = form_of_body(sent)
    if form not in FORMATS:
        return
    answer = normalize(body, provider)
    shares[f"{form} and back, bodies"].add(sent, load_json(convert(stored(answer), form).value))
    for other in FORMATS:
        if other is not form:
            between = convert(answer, other)
            read = normalize(between.value, other.provider, status=between.status)
            shares[f"{form} -> {other} -> {form}"].add(sent, load_json(convert(read, form).value))


def _measure_stream(provider: str, body: bytes, shares: defaultdict[str, Share]) -> None:
    deltas = normalize_stream([body], provider)
    list(deltas)
    form = source_form(deltas.response)
    if form in FORMATS:
        written = b"".join(convert_stream(normalize_stream([body], provider), form))
        again = normalize(written, provider)
        shares[f"{form} and back, streams"].add(_canonical(deltas.response), _canonical(again))


def stored(answer: ChatResponse) -> ChatResponse:
    """*answer* without its bytes."""
    return from_json(to_json(answer), ChatResponse)


def _canonical(answer: ChatResponse) -> Any:
    """*answer* as canonical JSON, less what was measured."""
    value = load_json(to_json(answer))
    for name in ("raw_events", "attempts"):
        value.pop(name, None)
    for name in ("request_duration_seconds", "time_to_first_token_seconds"):
        value["metadata"].pop(name, None)
    return value


def main() -> None:
    """Print the table."""
    for name, share in measure().items():
        print(f"{name:58} {share}")


if __name__ == "__main__":
    main()

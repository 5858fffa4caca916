"""The comparison of stored answers with the result of mapping them now, and the list of accepted changes.

``crosswalk diff --write-accepted`` writes the list and ``--accept`` reads it. A line is a JSON object that names a kind of
change: the provider, the path, and the values or types before and after.
``{"provider":"ollama","path":"usage.cached_tokens","before":"absent","after":"number"}``. Other keys, such as a reason,
are ignored, and so are blank lines and lines that begin with ``#``.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.cli.logs.storing import Failure, Outcome
from crosswalk.cli.terminal import UsageError, harmless
from crosswalk.codec import ABSENT, Difference, differences
from crosswalk.drafts import written
from crosswalk.testing.changes import ERROR, Kind, Summary, accepted_lines
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import SegmentType


class Comparison:
    """Counts differences. Its size does not grow with the number of answers, and it can be sent between processes.

    Args:
        accepted: the accepted changes, as :func:`crosswalk.cli.logs.accepted.read_accepted` returns them.

    Attributes:
        compared: the number of answers compared.
        different: the number of answers with a difference that is not accepted.
        accepted: the number of answers with accepted differences only.
        summary: every kind of change.
    """

    def __init__(self, accepted: Set[tuple[str, str, str, str]] = frozenset()) -> None:
        self.summary = Summary(accepted)
        self.compared = 0
        self.different = 0
        self.accepted = 0

    def add(self, place: str, before: Outcome, after: Outcome) -> list[Difference]:
        """Compare one answer, and return the differences.

        Args:
            place: the place of the answer, for reports.
            before: the stored form.
            after: the result of mapping it now.
        """
        result = between(before, after)
        self.count(place, provider_of_both(before, after), result)
        return result

    def count(self, place: str, provider: str, found: list[Difference]) -> None:
        """Count one answer that was compared.

        Args:
            place: the place of the answer, for reports.
            provider: its provider id, or empty if unknown.
            found: the differences.
        """
        self.compared += 1
        if found:
            is_accepted = self.summary.add(found, provider, harmless(place))
            self.accepted += is_accepted
            self.different += not is_accepted

    def add_same(self, count: int) -> None:
        """Count answers that are known to be equal."""
        self.compared += count

    def include(self, other: Comparison) -> None:
        """Add the counts of *other*, which was compared later."""
        self.summary.include(other.summary)
        self.compared += other.compared
        self.different += other.different
        self.accepted += other.accepted


def provider_of_both(before: Outcome, after: Outcome) -> str:
    """The provider of an answer: the stored one, else the present one, or empty if neither is known."""
    return _provider(before) or _provider(after) or ""


def _provider(outcome: Outcome) -> str | None:
    response = outcome.partial if isinstance(outcome, Failure) else outcome
    return None if response is None else response.metadata.provider_id


def between(before: Outcome, after: Outcome) -> list[Difference]:
    """The differences between *before* and *after*. A difference in whether or how mapping fails hides all others."""
    if _error(before) != _error(after):
        return [Difference((ERROR,), _message(before), _message(after))]
    one, other = _received(before), _received(after)
    if one is None or other is None:
        return [] if one is other else [Difference(("partial",), *map(_presence, (one, other)))]
    return differences(one, other)


def _received(outcome: Outcome) -> ChatResponse | None:
    """The response. For a failure it is the partial answer, without the text of the error."""
    if not isinstance(outcome, Failure):
        return outcome
    partial = outcome.partial
    if partial is None or not partial.segments or partial.segments[-1].type is not SegmentType.ERROR:
        return partial
    return attrs.evolve(partial, refusal=None, segments=partial.segments[:-1])


def _error(outcome: Outcome) -> str | None:
    """The name of the error; its message is wording and makes no difference."""
    return outcome.error if isinstance(outcome, Failure) else None


def _message(outcome: Outcome) -> Any:
    return f"{outcome.error}: {outcome.message}" if isinstance(outcome, Failure) else ABSENT


def _presence(partial: object) -> Any:
    return ABSENT if partial is None else {}


Accepted: TypeAlias = frozenset[tuple[str, str, str, str]]
"""Provider, path, before, after of each change that is accepted."""

_KEYS: Final = ("provider", "path", "before", "after")


def read_accepted(path: str) -> Accepted:
    """The list in the file *path*.

    Raises:
        UsageError: the file, or a line in it, cannot be read.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None
    results = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        try:
            raw = orjson.loads(line)
            provider, field, before, after = (raw[key] for key in _KEYS)
            results.add((str(provider), str(field), str(before), str(after)))
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{path}:{number}: expected an object with {', '.join(_KEYS)}") from None
    return frozenset(results)


def write_accepted(path: str, kinds: Iterable[Kind]) -> None:
    """Write the list of *kinds*, including those that were accepted before, and replace an earlier list.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        with written(Path(path), replace=True) as out:
            out.writelines(accepted_lines(kinds))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None

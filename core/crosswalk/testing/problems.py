"""The problems that the kit reports, one for each cause, and exceptions from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

import attrs

from crosswalk.errors import ConfigurationError

PAIR_CHECK: Final = "body and stream agree"
"""The name of the check of a pair, as an exception writes it."""
EXCEPTIONS: Final = "EXCEPTIONS"
"""The file in the folder of the captures that lists the exceptions, each ``CHECK: WHERE: REASON``."""
_SHOWN: Final = 5
_SUBJECTS: Final = {
    "counts": re.compile(r"usage\b"),
    "calls": re.compile(r"(message\.tool_)?calls\b|tool call\b"),
    "log probabilities": re.compile(r"logprobs\b"),
    "time": re.compile(r"created\b"),
    "identity": re.compile(r"(id|model)\b"),
    "end": re.compile(r"(raw_)?finish|(complete|error|retryable|failure|raises|as it is)\b"),
    "text": re.compile(r"(text|reasoning|refusal|message|segments|alternatives)\b"),
    "kind": re.compile(r"kind\b"),
}
"""The parts of an answer, each with its canonical fields and the facts of a statement about it."""


def subject_of(names: Iterable[str]) -> str:
    """Return the part of an answer that the canonical fields or stated facts *names* belong to, or ``""``."""
    names = [name.removeprefix("metadata.provenance.") for name in names]
    return next((subject for subject, own in _SUBJECTS.items() if any(map(own.match, names))), "")


@attrs.frozen
class Problem:
    """A broken promise.

    Attributes:
        promise: ``P1`` to ``P8``.
        place: the capture, and the position in it.
        message: a description of the problem.
        check: the name of the check that found it, from :data:`crosswalk.testing.CHECKS`, or ``body and stream agree``.
        path: the path of the leaf, without the numbers of items. Empty if the problem does not concern a leaf.
        case: the name of the capture or of the pair.
        subject: the part of the answer that is wrong, such as ``text`` or ``counts``. Empty if it is none of them.
        others: the other places with the same cause, see :func:`by_cause`.
    """

    promise: str
    place: str
    message: str
    check: str = ""
    path: str = ""
    case: str = ""
    subject: str = ""
    others: tuple[str, ...] = ()

    @property
    def exception(self) -> str:
        """An exception for this problem alone: ``CHECK: PATH``, or ``CHECK: CAPTURE`` if there is no path."""
        return f"{self.check}: {self.path or self.case}"

    @property
    def cause(self) -> tuple[str, ...]:
        """A key that problems of one cause share: the subject, the object that holds the leaf, or check and message."""
        if self.subject:
            return ("subject", self.subject)
        holder = self.path.rpartition(".")[0] or self.path
        return ("path", holder) if holder else ("check", self.check, self.message)

    @property
    def line(self) -> str:
        """The problem, with its exception in brackets."""
        return f"{self} [{self.exception}]"

    def __str__(self) -> str:
        more = f" and {len(self.others) - _SHOWN} more" if len(self.others) > _SHOWN else ""
        also = f"; also at {', '.join(self.others[:_SHOWN])}{more}" if self.others else ""
        return f"{self.promise} {self.place}: {self.message}{also}"


def by_cause(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem for each cause: the first one, with the other places.

    Problems have one cause if they have one subject. Without a subject, they have one cause if they are at the leaves
    of one object, or have no path and the same check and message.
    """
    causes: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        causes.setdefault(problem.cause, []).append(problem)
    return [_joined(first, others) for first, *others in causes.values()]


def _joined(first: Problem, others: list[Problem]) -> Problem:
    own, *more = (problem.path or problem.place.partition(", ")[2] for problem in [first, *others])
    return attrs.evolve(first, others=tuple(dict.fromkeys(place for place in more if place != own)))


@attrs.define
class KnownException:
    """A problem that is not reported: the check is right, and so is the provider or the capture.

    Attributes:
        check: the name of the check.
        where: the path of a leaf without the numbers of items, a capture, a pair, or ``FOLDER/CAPTURE``.
        reason: the reason why it is right.
        is_used: whether it covered a problem.
    """

    check: str
    where: str
    reason: str
    is_used: bool = False

    @classmethod
    def parsed(cls, text: str, reason: str, checks: Iterable[str]) -> Self:
        """Parse the exception ``CHECK: WHERE``.

        Raises:
            ConfigurationError: it does not name a check of *checks*, or has no place.
        """
        check, _, where = text.partition(": ")
        if check not in (PAIR_CHECK, *checks) or not where.strip():
            raise ConfigurationError(
                f"an exception is 'CHECK: PATH' or 'CHECK: CAPTURE', with the name of a check, not {text[:80]!r}"
            )
        return cls(check, where.strip(), reason)

    def covers(self, problem: Problem, folder: str = "") -> bool:
        """Whether *problem*, of a capture in *folder*, is excepted."""
        is_there = self.where == problem.path or f"/{folder}/{problem.case}".endswith(f"/{self.where}")
        return is_there and self.check == problem.check

    def __str__(self) -> str:
        return f"{self.check}: {self.where}"


_LINE: Final = re.compile(r"(?P<text>[^:]+: \S.*?): (?P<reason>.*\S)")


def read_exceptions(file: Path, checks: Iterable[str]) -> list[KnownException]:
    """Read the exceptions in *file*, each ``CHECK: WHERE: REASON``. Blank lines and ``#`` comments are skipped.

    Raises:
        ConfigurationError: the file cannot be read, or a line in it is not an exception.
    """
    source, checks = str(file), tuple(checks)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigurationError(f"{source}: {cause}", source=source) from None
    known = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        try:
            if match is None:
                raise ConfigurationError("expected 'CHECK: PATH: reason' or 'CHECK: CAPTURE: reason'")
            known.append(KnownException.parsed(match["text"], match["reason"], checks))
        except ConfigurationError as error:
            raise ConfigurationError(f"{source}:{number}: {error}", source=source) from None
    return known

"""The problems that the kit reports, one for each mistake, and exceptions from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

import attrs

from crosswalk.errors import ConfigurationError

PAIR_CHECK: Final = "body and stream agree"
"""The name of the check of a pair, as an exception writes it."""
EXCEPTIONS: Final = "EXCEPTIONS"
"""The file in the folder of the captures that lists the exceptions, each ``CHECK: WHERE: REASON``."""
_MAX_SHOWN_PLACES: Final = 5
_BECAME: Final = " became "
_FAILED: Final = f"error{_BECAME}"
SHARED_STATE: Final = "answers share a state"
"""The kind of mistake after which no comparison means anything: all other problems are its consequences."""
_POSITION: Final = re.compile(r"\[\d+\]$")
_PART_PATTERNS: Final = {
    "framing": re.compile("framing"),
    "calls": re.compile(r"(message\.tool_)?calls\b|tool[ _]call\b"),
    "log probabilities": re.compile(r"logprobs\b"),
    "time": re.compile(r"created\b"),
    "duration": re.compile(r"(metadata\.request_)?duration"),
    "id": re.compile(r"id\b"),
    "model": re.compile(r"(metadata\.)?model(_id)?\b"),
    "end": re.compile(r"(raw_)?finish|complete\b"),
    "error": re.compile(r"(error(_\w+)?|retryable|failure|raises|as it is)\b"),
    "reasoning": re.compile(r"reasoning\b"),
    "refusal": re.compile(r"(message\.)?refusal\b"),
    "text": re.compile(r"(message\.content|text|message|order)\b"),
    "choices": re.compile(r"(choices|alternatives)\b"),
}
"""The parts of an answer, each with its canonical fields and the facts of a statement about it."""
_CHOICE: Final = re.compile(r"(alternatives|choices)\[\d*\]\.")
_KINDS: Final = {
    "as stated": "misread",
    "nothing lost": "lost",
    "text only once": "said twice",
    "kinds are told apart": "read like another kind",
    "own framing is exact": "framed wrongly",
    "text as it was sent": "changed",
    "output shows": "lost",
    "digits kept": "changed",
    "times kept": "changed",
    "arguments told apart": "changed",
    "nothing invented": "invented",
    "nothing filled in": "invented",
    "counts are the provider's": "miscounted",
}
"""What has become of a part of an answer, by the check that saw it. The others say it by their names."""


def _parts_of(field: str) -> Iterator[str]:
    """Yield the parts of an answer that a canonical field, or a fact of a statement, belongs to."""
    own_field = field.removeprefix("metadata.provenance.")
    name = _CHOICE.sub("", own_field)
    if name != own_field:
        yield "choices"
    if name.startswith("usage"):
        yield name.partition(".")[2].replace("_", " ") or "counts"
    else:
        yield from [part for part, pattern in _PART_PATTERNS.items() if pattern.match(name)][:1]


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
        fields: the canonical fields that it is about, or that change with the leaf.
        kind: the kind of mistake if it is known, such as ``reasoning became text``.
        others: the other problems of the same mistake, see :func:`by_cause`.
    """

    promise: str
    place: str
    message: str
    check: str = ""
    path: str = ""
    case: str = ""
    fields: tuple[str, ...] = ()
    kind: str = ""
    others: tuple[Problem, ...] = ()

    @property
    def exception(self) -> str:
        """An exception for this problem alone: ``CHECK: PATH``, or ``CHECK: CAPTURE`` if there is no path.

        For a pair it is ``CHECK: PAIR FIELD``.
        """
        where = f"{self.case} {self.path}" if self.check == PAIR_CHECK else self.path or self.case
        return f"{self.check}: {where}"

    @property
    def leaf(self) -> str:
        """The path of the leaf of the wire, with its position in a row. Empty if the path is a canonical field."""
        position = _POSITION.search(self.place)
        leaf = self.path[:-2] + position[0] if position and self.path.endswith("[]") else self.path
        return "" if leaf in self.fields else leaf

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the answer that it is about, such as ``text`` or ``prompt tokens``."""
        became = self.kind.split(_BECAME) if _BECAME in self.kind else []
        own_parts = [part for field in self.fields for part in _parts_of(field)]
        return frozenset(own_parts).union(*([*_parts_of(part)] or [part] for part in became))

    @property
    def cause(self) -> tuple[object, ...]:
        """A key that problems share if they differ in their captures, messages and tries alone."""
        return self.leaf, self.parts, self.check, self.kind, "" if self.leaf or self.parts else self.message

    def has_cause_of(self, other: Problem) -> bool:
        """Whether one mistake explains both.

        They are at one leaf of the wire, at one inside of the other, or say the same of one part of the answer. If they
        are about no part, it is enough that they are in one object. Without a leaf they are about one part, or have the
        same check and message.
        """
        parts = self.parts & other.parts
        if not (self.leaf and other.leaf):
            is_same = (self.check, self.message) == (other.check, other.message)
            return bool(parts) or (is_same and not (self.parts or other.parts))
        keys, other_keys = (one.leaf.replace("[", ".[").split(".") for one in (self, other))
        is_inside = other_keys[: len(keys)] == keys or keys[: len(other_keys)] == other_keys
        is_beside = not (self.parts or other.parts) and keys[:-1] == other_keys[:-1] != []
        is_kind = "kinds are told apart" in (self.check, other.check)  # at the word that says what a text is
        is_alike = bool(parts) and (is_kind or (self.check, self.kind) == (other.check, other.kind))
        return is_inside or is_beside or is_alike or keys[-1] == other_keys[-1]

    @property
    def line(self) -> str:
        """The problem, with its exception in brackets."""
        return f"{self} [{self.exception}]"

    def __str__(self) -> str:
        own_place, *other_places = (one.path or one.place.partition(", ")[2] for one in (self, *self.others))
        places = [place for place in dict.fromkeys(other_places) if place != own_place]
        shown_places = ", ".join(places[:_MAX_SHOWN_PLACES])
        if len(places) > _MAX_SHOWN_PLACES:
            shown_places += f" and {len(places) - _MAX_SHOWN_PLACES} more"
        laws = ", ".join({one.check: None for one in self.others if one.check != self.check})
        kind_text = f"{self.kind}: " if self.kind else ""
        also_text = f"; also at {shown_places}" if places else ""
        laws_text = f"; also seen by {laws}" if laws else ""
        return f"{self.promise} {self.place}: {kind_text}{self.message}{also_text}{laws_text}"


def by_cause(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem for each mistake: the first one, named by its kind, with the others.

    Problems at a leaf of the wire come together first, see :meth:`Problem.has_cause_of`. Those without a leaf, such as what
    a statement contradicts, join the first of these that is about the same part of the answer. A failure that is read as
    a good answer explains all that only its captures show, and a state that answers share explains everything.
    """
    problems = list(problems)
    for problem in problems:
        if problem.kind == SHARED_STATE:
            return [attrs.evolve(problem, others=tuple(one for one in problems if one is not problem))]
    alike: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        alike.setdefault(problem.cause, []).append(problem)
    order = [*alike]
    groups: list[list[tuple[object, ...]]] = []
    ranks = {
        cause: (not ones[0].kind.startswith(_FAILED), not ones[0].leaf, ones[0].check == "as stated")
        for cause, ones in alike.items()
    }
    for cause in sorted(order, key=ranks.__getitem__):
        group = next(
            (one for one in groups if any(_have_one_cause(alike[cause], alike[key]) for key in one)), None
        )
        if group is None:
            groups.append(group := [])
        group.append(cause)
    found = []
    for group in groups:
        leading = [alike[cause][0] for cause in group]
        group.sort(key=order.index)
        first, *others = (one for cause in group for one in alike[cause])
        names = [one.kind for one in leading] + [_named(one) for one in leading if others]
        kind = next(filter(None, names), "")
        found.append((order.index(group[0]), attrs.evolve(first, kind=kind, others=tuple(others))))
    return [problem for _, problem in sorted(found, key=lambda one: one[0])]


def _have_one_cause(problems: list[Problem], others: list[Problem]) -> bool:
    """Whether one mistake explains two lists of problems, each with one cause."""
    pairs = (problems, others), (others, problems)
    return problems[0].has_cause_of(others[0]) or any(_follow(*pair) for pair in pairs)


def _follow(problems: list[Problem], others: list[Problem]) -> bool:
    """Whether *problems* are consequences of *others*: of a failure read as a good answer, or in their captures alone."""
    problem, other = problems[0], others[0]
    is_made_up_end = problem.check == "nothing invented" and "end" in problem.parts
    is_in_error = [".error." in f".{one.leaf}" for one in (problem, other)]
    if (is_made_up_end and ("error" in other.parts or is_in_error[1])) or (
        all(is_in_error) and not problem.parts
    ):
        return True
    is_explained = other.kind.startswith(_FAILED) or (is_made_up_end and not other.parts)
    is_of_same_captures = {one.case for one in problems} <= {one.case for one in others}
    return is_of_same_captures and (is_explained or problem.place.endswith(", events"))


def _named(problem: Problem) -> str:
    """Return the kind of mistake that *problem* shows, such as ``text changed``, or ``""``."""
    is_known = problem.parts and problem.check in _KINDS
    return f"{' and '.join(sorted(problem.parts))} {_KINDS[problem.check]}" if is_known else ""


@attrs.define
class KnownException:
    """A problem that is not reported: the check is right, and so is the provider or the capture.

    Attributes:
        check: the name of the check.
        where: the path of a leaf without the numbers of items, a capture, a pair and a field, or ``FOLDER/CAPTURE``.
            For ``not recorded``, what is not.
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
        if check not in (PAIR_CHECK, "not recorded", *checks) or not where.strip():
            raise ConfigurationError(
                f"an exception is 'CHECK: PATH' or 'CHECK: CAPTURE', with the name of a check, not {text[:80]!r}"
            )
        return cls(check, where.strip(), reason)

    def covers(self, problem: Problem, folder: str = "") -> bool:
        """Whether *problem*, of a capture in *folder*, is excepted."""
        place = problem.exception.removeprefix(f"{problem.check}: ")
        places = [place] if problem.check == PAIR_CHECK else [place, problem.case]
        is_same_place = any(f"/{folder}/{one}".endswith(f"/{self.where}") for one in places)
        return is_same_place and self.check == problem.check

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
    exceptions = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        try:
            if match is None:
                raise ConfigurationError("expected 'CHECK: PATH: reason' or 'CHECK: CAPTURE: reason'")
            exceptions.append(KnownException.parsed(match["text"], match["reason"], checks))
        except ConfigurationError as error:
            raise ConfigurationError(f"{source}:{number}: {error}", source=source) from None
    return exceptions

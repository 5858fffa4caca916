"""The list of known problems that ``crosswalk check --exceptions`` takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

from crosswalk.cli.exits import UsageError

__all__ = ["KnownProblem", "read_known_problems"]

_LINE: Final = re.compile(r"(?:(?P<promise>P[1-8]) )?(?P<name>\S.*?): (?P<reason>.*\S)")


@attrs.define
class KnownProblem:
    """A problem that does not count.

    Attributes:
        line: as it stands in the list.
        promise: the promise that may be broken, or ``None`` for any.
        name: the capture, or a pair by its common name, perhaps with its folder before it.
        reason: why it does not count.
        is_used: whether a problem was covered by it.
    """

    line: str
    promise: str | None
    name: str
    reason: str
    is_used: bool = False

    def covers(self, promise: str, folder: Path, name: str) -> bool:
        """Whether it is about *promise* and the capture or pair *name* in *folder*."""
        place = f"/{folder.as_posix()}/{name}"
        return self.promise in (None, promise) and place.endswith(f"/{self.name}")


def read_known_problems(path: str) -> list[KnownProblem]:
    """The list in the file *path*: a line each, blank ones and those with a ``#`` before them left out.

    Raises:
        UsageError: the file cannot be read, or a line in it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(f"{path}: {cause}") from None
    known = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if found is None:
                raise UsageError(f"{path}:{number}: expected 'CASE: reason'")
            known.append(KnownProblem(line, found["promise"], found["name"], found["reason"]))
    return known

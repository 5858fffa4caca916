"""The list of changes that ``crosswalk diff --accept`` reads and ``--write-accepted`` writes, one JSON object a line.

A line names a kind of change: the provider, the path, and the values or types before and after.
``{"provider":"ollama","path":"usage.cached_tokens","before":"absent","after":"number"}``. Other keys, such as a reason,
are ignored, and so are blank lines and lines that begin with ``#``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

import orjson

from crosswalk.cli.exits import UsageError
from crosswalk.drafts import written
from crosswalk.testing.changes import Kind, accepted_lines

__all__ = ["Accepted", "read_accepted", "write_accepted"]

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

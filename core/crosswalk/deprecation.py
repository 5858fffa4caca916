"""How something public goes: it warns for a while, and says what to take instead and when it will be gone.

A function or a class is marked with :func:`deprecated`, which type checkers and editors show too; its text is to end like
that of :func:`message`. A name that has become another is given to :func:`renamed`, an argument to :func:`warn`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import deprecated

__all__ = ["deprecated", "message", "renamed", "warn"]


def message(what: str, *, instead: str, gone_in: str) -> str:
    """What a warning says, the same words everywhere."""
    return f"{what} is deprecated: use {instead}; it will be gone in {gone_in}"


def warn(what: str, *, instead: str, gone_in: str, depth: int = 1) -> None:
    """Warn whoever called the function that calls this.

    Args:
        what: what was used, such as ``"the argument on_error"``.
        instead: what to use.
        gone_in: the version without it.
        depth: how many more functions of ours lie between.
    """
    text = message(what, instead=instead, gone_in=gone_in)
    warnings.warn(text, DeprecationWarning, stacklevel=depth + 2)


def renamed(
    package: str, found: Callable[[str], Any], names: Mapping[str, str], *, gone_in: str
) -> Callable[[str], Any]:
    """The ``__getattr__`` of *package* that gives new names under their old ones too.

    Args:
        package: its full name.
        found: its ``__getattr__`` so far.
        names: the new name of each old one.
        gone_in: the version without the old ones.
    """

    def __getattr__(name: str) -> Any:
        new = names.get(name)
        if new is None:
            return found(name)
        warn(f"{package}.{name}", instead=f"{package}.{new}", gone_in=gone_in)
        return getattr(sys.modules[package], new)

    return __getattr__

"""Refuses the wrong keyword of a call that people type, and names the right one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from crosswalk.plain_errors import ConfigurationError
from crosswalk.text import meant, nearest

C = TypeVar("C", bound=Callable[..., Any])

_SYNONYMS: Final = {
    "max_retries": ("retry", "attempts"),
    "url": ("base_url",),
    "host": ("base_url",),
    "api_base": ("base_url",),
    "messages": ("request", "turns"),
    "prompt": ("request", "messages"),
    "system": ("instructions",),
    "system_prompt": ("instructions",),
    "response_model": ("output_type", "answer"),
    "mime_type": ("media_type",),
    "path": ("file", "folder"),
}
"""Other libraries' names of our arguments, if they are not similar to ours."""


def checks_keywords(
    *more: Iterable[str], elsewhere: Mapping[str, Iterable[str]] | None = None
) -> Callable[[C], C]:
    """Decorate a function, or a class for its constructor, so that a wrong keyword raises with the nearest right one.

    Args:
        more: the keywords that it takes as ``**options``.
        elsewhere: keywords that belong to another class, by the name of the class.
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, type):
            made: Any = target
            made.__init__ = decorate(made.__init__)
            return made
        code = target.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = frozenset(names).union(*more) - {"self"}

        def check(options: Mapping[str, Any]) -> None:
            if not known.issuperset(options):
                raise _wrong(next(name for name in options if name not in known), known, elsewhere or {})

        if inspect.iscoroutinefunction(target):

            @functools.wraps(target)
            async def checked_coroutine(*arguments: Any, **options: Any) -> Any:
                check(options)
                return await target(*arguments, **options)

            return checked_coroutine

        @functools.wraps(target)
        def checked(*arguments: Any, **options: Any) -> Any:
            check(options)
            return target(*arguments, **options)

        return checked

    return decorate


def _wrong(name: str, known: Iterable[str], elsewhere: Mapping[str, Iterable[str]]) -> ConfigurationError:
    """Return the error for the wrong keyword *name*."""
    hint = next((f", did you mean {right!r}?" for right in _SYNONYMS.get(name, ()) if right in known), "")
    hint = hint or meant(name, sorted(known))
    if not hint:
        owners = {option: owner for owner, options in elsewhere.items() for option in options}
        if near := nearest(name, owners):
            hint = f"; give it in {owners[near]}(..., {near}=...)"
    return ConfigurationError(f"there is no option {name!r:.60}{hint}", key=name)

"""The errors that hold no response, so that every module may raise them, and those that are nobody's failure.

:mod:`crosswalk.errors` has the whole tree.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Final

_FACES: Final = {
    **dict.fromkeys(("crosswalk.errors", "crosswalk.plain_errors", "crosswalk.types.response"), "crosswalk"),
    **dict.fromkeys(
        ("crosswalk.request", "crosswalk.service.batch_files", "crosswalk.service.json_answer"),
        "crosswalk.service",
    ),
    **{f"crosswalk.agent.{name}": "crosswalk.agent" for name in ("results", "store", "tools", "turn")},
    **dict.fromkeys(("crosswalk.convert.losses", "crosswalk.formats.writing"), "crosswalk.convert"),
    "crosswalk.structured.result": "crosswalk.structured",
}
"""The package from which users import the errors of a module: a traceback shows this address."""


class CrosswalkError(Exception):
    """The root of every error that Crosswalk raises on purpose."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__module__ = _FACES.get(cls.__module__, cls.__module__)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state, so that errors survive the way back from a worker process."""
        return _restore, (type(self), self.args, self.__dict__)


CrosswalkError.__module__ = "crosswalk"


def _restore(kind: type[CrosswalkError], args: tuple[Any, ...], state: dict[str, Any]) -> CrosswalkError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ResponseValidationError(CrosswalkError, ValueError):
    """A canonical value breaks one of its rules.

    Attributes:
        code: ``ACODE-RSP-001`` to ``ACODE-RSP-010``, or ``None`` for a rule outside that table.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code


class ToolCallArgumentsError(CrosswalkError, ValueError):
    """The arguments of a tool call are not a JSON object.

    Attributes:
        name: the tool's name.
        call_id: the call's id.
    """

    def __init__(self, message: str, *, name: str, call_id: str) -> None:
        super().__init__(message)
        self.name = name
        self.call_id = call_id


class CanonicalJSONError(CrosswalkError, ValueError):
    """Stored canonical JSON cannot be read back.

    Attributes:
        problems: one sentence each, ``problem @ $.path``.
    """

    def __init__(self, message: str, *, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class ConfigurationError(CrosswalkError, ValueError):
    """A setting has an unknown key or a wrong value.

    Attributes:
        key: the setting's dotted name or environment variable, or ``None`` when the file itself is at fault.
        source: the file or ``"environment"``.
    """

    def __init__(self, message: str, *, key: str | None = None, source: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.source = source


class PluginError(CrosswalkError):
    """A provider plugin cannot be imported or breaks the hookspec.

    Attributes:
        plugin: the provider id.
        distribution: the installed distribution that ships it, or ``None`` when it was registered in the
            program.
    """

    def __init__(self, message: str, *, plugin: str, distribution: str | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.distribution = distribution


class UnknownProviderError(PluginError, LookupError):
    """No provider of that name is installed or registered, or it is blocked.

    Attributes:
        known: the provider ids that could be resolved instead.
    """

    def __init__(self, message: str, *, plugin: str, known: Sequence[str] = ()) -> None:
        super().__init__(message, plugin=plugin)
        self.known = tuple(known)


class DetectionError(CrosswalkError, LookupError):
    """No provider recognizes a payload, or several do equally.

    Attributes:
        candidates: the provider ids that recognize it, or empty if none does.
        known: if none does, the ids of the providers that can be named instead.
        broken: the ids of the providers that cannot be used.
    """

    def __init__(
        self,
        message: str,
        *,
        candidates: Sequence[str] = (),
        known: Sequence[str] = (),
        broken: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)
        self.known = tuple(known)
        self.broken = tuple(broken)


def is_cancellation(error: BaseException) -> bool:
    """Whether *error* ends the program, a task, or what a signal interrupts, and is not a fault of a plugin.

    Does not import asyncio.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return (
        isinstance(error, KeyboardInterrupt)
        or not names.isdisjoint({"CancelledError", "Cancelled"})
        or interruption_of(error) is not None
    )


def raise_interruption(error: Exception) -> None:
    """Raise what a signal's handler has raised, if *error* is that or came of it."""
    interruption = interruption_of(error)
    if interruption is not None:
        raise interruption from None


def interruption_of(error: BaseException) -> BaseException | None:
    """Return what a signal's handler has raised, if *error* is that or came of it, such as an alarm's ``TimeoutError``.

    Python hands a handler the frame that it interrupts, so a traceback shows a handler by its argument: the frame in front
    of its own. An error that a caller of this work handles at present has reached that caller, and does not count.
    """
    running: list[FrameType] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        running.append(frame)
        frame = frame.f_back
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        trace = following.__traceback__
        if seen and trace is not None and trace.tb_frame in running:
            return None
        seen.add(id(following))
        while trace is not None and trace.tb_next is not None:
            frame, trace = trace.tb_frame, trace.tb_next
            if any(argument is frame for argument in _arguments(trace.tb_frame)):
                return following
        following = following.__cause__ or following.__context__
    return None


def _arguments(frame: FrameType) -> Iterator[Any]:
    code, values = frame.f_code, frame.f_locals
    for name in code.co_varnames[: code.co_argcount]:
        yield values.get(name)
    if code.co_flags & _TAKES_MORE:
        more = values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        yield from more if isinstance(more, tuple) else ()


_TAKES_MORE: Final = 4
"""The flag of code with an argument ``*more``: ``inspect.CO_VARARGS``, which takes long to load."""

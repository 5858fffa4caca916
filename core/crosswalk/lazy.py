"""Imports the names of packages on first use, so that importing a package costs nothing (promise P7). Does the same for
modules and for compiling regular expressions.

A face is a package or module whose names others import. It lists them twice: for type checkers and editors with imports
that never run, and for the interpreter with a table of the same modules and names::

    if TYPE_CHECKING:
        from crosswalk.agent.chat import AsyncChatAgent as AsyncChatAgent, ChatAgent as ChatAgent
    else:
        __getattr__, __dir__ = face(__name__, {"crosswalk.agent.chat": "AsyncChatAgent ChatAgent"})

A test holds the two together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import re

_NONE: Mapping[str, str] = {}
_Functions = tuple[Callable[[str], Any], Callable[[], list[str]]]


def face(
    package: str,
    names: Mapping[str, str],
    *,
    modules: Mapping[str, str] = _NONE,
    beside: Iterable[str] = (),
    hidden: str = "",
) -> _Functions:
    """Return ``__getattr__`` and ``__dir__`` of *package*, which imports a name when it is first used.

    Args:
        package: its full name.
        names: its names, separated by spaces, for each module that defines them.
        modules: modules that are its attributes, by name. Its own modules in *names* are, too.
        beside: public names that it defines itself.
        hidden: the names that ``__all__`` leaves out, separated by spaces.
    """
    homes = {name: module for module, listed in names.items() for name in listed.split()}
    own = {path.rpartition(".")[2]: path for path in names if path.rpartition(".")[0] == package}
    attributes = {**own, **modules}
    public = sorted({*homes, *modules, *beside} - {*hidden.split()})

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return public
        home = homes.get(name)
        if home is not None:
            value = getattr(import_module(home), name)
            setattr(sys.modules[package], name, value)  # found the usual way from now on
            return value
        if name in attributes:
            return import_module(attributes[name])
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *modules, *beside})

    return __getattr__, __dir__


def later(module: str) -> Any:
    """Return *module*, imported on first use. For type checkers, import it under ``TYPE_CHECKING``.

    Annotations such as ``decimal.Decimal`` can still be resolved.
    """
    return _Later(module)


class _Later:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        result = getattr(import_module(self._module), name)
        setattr(self, name, result)  # a plain attribute from now on
        return result


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return ``re.compile(source, flags)``, compiled on first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


class _Pattern:
    def __init__(self, source: Any, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        import re

        result = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, result)  # a plain attribute from now on
        return result

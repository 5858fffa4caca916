"""Imports the names of packages on first use, so that importing a package costs nothing (promise P7). Does the same for
modules and for compiling regular expressions.

A public name is only listed in the ``__all__`` of its module. A package lists the modules of its names twice: for type
checkers and editors with imports that never run, and for the interpreter with :func:`lazy`::

    if TYPE_CHECKING:
        from crosswalk.agent.chat import *
        from crosswalk.agent.tools import *
    else:
        __getattr__, __dir__ = lazy(__name__, "chat tools")
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import re

__all__ = ["imported_when_used", "later", "lazy", "pattern"]

_NONE: Mapping[str, str] = {}
_Functions = tuple[Callable[[str], Any], Callable[[], list[str]]]


def lazy(
    package: str, modules: str, *, beside: Iterable[str] = (), submodules: Mapping[str, str] = _NONE
) -> _Functions:
    """Return ``__getattr__`` and ``__dir__`` of *package*, which has all names of its *modules*, separated by spaces.

    A module outside the package is given by its path below ``crosswalk``. *beside* are the public names that the package
    defines, and *submodules* the modules that are attributes, by name.
    """
    paths = {
        module: f"crosswalk.{module}" if "." in module else f"{package}.{module}"
        for module in modules.split()
    }

    names_of = cache(_names_of)

    def home_of(name: str) -> str | None:  # stops at the first module that has it
        return next((path for path in paths.values() if name in names_of(path)), None)

    def names() -> set[str]:
        return {name for path in paths.values() for name in names_of(path)}.union(beside, submodules)

    return imported_when_used(package, home_of, names, submodules={**paths, **submodules})


def imported_when_used(
    package: str,
    home_of: Callable[[str], str | None],
    names: Callable[[], Iterable[str]],
    *,
    submodules: Mapping[str, str] = _NONE,
) -> _Functions:
    """Return ``__getattr__`` and ``__dir__`` of *package*.

    Args:
        package: its full name.
        home_of: returns the module of a name on its first use, or ``None`` for an unknown name.
        names: all of its public names.
        submodules: modules that are its attributes too, even before their import, by name.
    """

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted(names())
        if name in submodules:
            return import_module(submodules[name])
        home = None if name.startswith("__") and name != "__version__" else home_of(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)  # found the usual way from now on
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names()})

    return __getattr__, __dir__


def _names_of(module: str) -> list[str]:
    """Return the ``__all__`` of *module*.

    It is read from the module's text, so that the module need not run. Without a text, or a list in it, the module is
    imported.
    """
    import re
    from importlib.util import find_spec

    spec = find_spec(module)
    read = getattr(spec.loader if spec is not None else None, "get_source", None)
    result = re.search(r"^__all__ = \[([^]]*)\]", (read(module) if read else None) or "", re.MULTILINE)
    return list(import_module(module).__all__) if result is None else re.findall(r'"(\w+)"', result[1])


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

"""Packages whose names are imported when they are first used, so that importing a package costs nothing (promise P7), and
regular expressions that are compiled then.

A public name stands in the ``__all__`` of its module and nowhere else. A package says from which modules it takes all of
them: to type checkers and editors with imports that never run, to the interpreter with :func:`lazy`::

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

__all__ = ["imported_when_used", "lazy", "pattern"]

_NONE: Mapping[str, str] = {}
_Functions = tuple[Callable[[str], Any], Callable[[], list[str]]]


def lazy(
    package: str, modules: str, *, beside: Iterable[str] = (), submodules: Mapping[str, str] = _NONE
) -> _Functions:
    """The ``__getattr__`` and ``__dir__`` of *package*, which has all names of its *modules*, separated by spaces.

    Of a module of ours that is none of its own, the path below ``crosswalk`` is given. *beside* are the public names that it
    has at once, *submodules* the modules which it has as a whole, by name.
    """
    paths = {
        module: f"crosswalk.{module}" if "." in module else f"{package}.{module}"
        for module in modules.split()
    }

    @cache
    def homes() -> dict[str, str]:
        return {name: path for path in paths.values() for name in _names_of(path)}

    return imported_when_used(
        package, homes, submodules={**paths, **submodules}, beside={*beside, *submodules}
    )


def imported_when_used(
    package: str,
    homes: Callable[[], Mapping[str, str]],
    *,
    submodules: Mapping[str, str] = _NONE,
    beside: Iterable[str] = (),
) -> _Functions:
    """The ``__getattr__`` and ``__dir__`` of *package*.

    Args:
        package: its full name.
        homes: tells each name's module; asked when a name is first used.
        submodules: modules that are its attributes too, also where nobody has imported them, by name.
        beside: the public names that it has at once.
    """

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted({*beside, *homes()})
        if name in submodules:
            return import_module(submodules[name])
        home = None if name.startswith("__") and name != "__version__" else homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)  # found the usual way from now on
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *beside, *homes()})

    return __getattr__, __dir__


def _names_of(module: str) -> list[str]:
    """The ``__all__`` of *module*.

    It is read off the module's text, so that the module need not run; where there is no text, or no list in it, the
    module is imported.
    """
    import re
    from importlib.util import find_spec

    spec = find_spec(module)
    read = getattr(spec.loader if spec is not None else None, "get_source", None)
    found = re.search(r"^__all__ = \[([^]]*)\]", (read(module) if read else None) or "", re.MULTILINE)
    return list(import_module(module).__all__) if found is None else re.findall(r'"(\w+)"', found[1])


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile(source, flags)``, compiled when it is first used; for a module that is read to answer."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


class _Pattern:
    def __init__(self, source: Any, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        import re

        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)  # a plain attribute from now on
        return found

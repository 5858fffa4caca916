"""The names of packages, imported on first use, so that importing a package costs nothing (promise P7). Modules and regular
expressions are made on first use, too.

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
from typing import TYPE_CHECKING, Any, AnyStr, Final, cast

if TYPE_CHECKING:
    import re

_NO_MODULES: Mapping[str, str] = {}
_Functions = tuple[Callable[[str], Any], Callable[[], list[str]]]


def face(
    package: str,
    names: Mapping[str, str],
    *,
    modules: Mapping[str, str] = _NO_MODULES,
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
    homes = {name: module for module, module_names in names.items() for name in module_names.split()}
    submodule_paths = {path.rpartition(".")[2]: path for path in names if path.rpartition(".")[0] == package}
    modules_by_attribute = {**submodule_paths, **modules}
    public_names = sorted({*homes, *modules, *beside} - {*hidden.split()})

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return public_names
        home = homes.get(name)
        if home is not None:
            value = getattr(import_module(home), name)
            setattr(sys.modules[package], name, value)  # found the usual way from now on
            return value
        if name in modules_by_attribute:
            return import_module(modules_by_attribute[name])
        if name == "__path__":  # each ``from package import name`` asks for it
            raise AttributeError(name)
        raise _no_name(package, name)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *modules, *beside})

    return __getattr__, __dir__


def _no_name(package: str, name: str) -> Exception:
    """Return the error for a *name* that *package* does not have, which names the right one if it is known.

    ``from package import name`` asks first, and replaces each AttributeError by an error of its own.
    """
    from crosswalk.words import right_word  # not needed by those who import what is there

    word = right_word(package, name) or _own_word(name)
    if word and sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"cannot import name {name!r} from {package!r}{word}", name=package)
    message = f"module {package!r} has no attribute {name!r}{word}"
    if word:
        return AttributeError(message)
    return AttributeError(message, name=name, obj=sys.modules[package])  # for Python's own suggestions


_FACES: Final = tuple(
    f"crosswalk{face}"
    for face in ("", ".service", ".agent", ".structured", ".convert", ".testing", ".plugins")
)


def _own_word(name: str) -> str:
    """What to say after the *name* of ours that another package has: the package that has it."""
    if not name[0].isupper():  # Python and its tools ask packages for other names
        return ""
    home = next((face for face in _FACES if name in import_module(face).__all__), None)
    return "" if home is None else f": use {home}.{name}"


def later(module: str) -> Any:
    """Return *module*, imported on first use. For type checkers, import it under ``TYPE_CHECKING``.

    Annotations such as ``decimal.Decimal`` can still be resolved.
    """
    return _Later(module)


class _Later:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(import_module(self._module), name)
        setattr(self, name, attribute)  # a plain attribute from now on
        return attribute


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return ``re.compile(source, flags)``, compiled on first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


class _Pattern:
    def __init__(self, source: Any, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        import re

        attribute = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, attribute)  # a plain attribute from now on
        return attribute

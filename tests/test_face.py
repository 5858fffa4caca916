"""The face of the package: every public name, and nothing loaded before it is used (promise P7)."""

from __future__ import annotations

import ast
import typing
from importlib import import_module
from pathlib import Path

import attrs
import pytest

import crosswalk
import crosswalk.plugins
from loading import loaded_by

TREE = ast.parse(Path(crosswalk.__file__).read_text())


def typed_imports() -> dict[str, str]:
    """A type checker's view: name to module, from the imports under ``if TYPE_CHECKING``."""
    block = next(node for node in TREE.body if isinstance(node, ast.If))
    found = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            assert alias.asname == alias.name, f"{alias.name} is not exported: import it as itself"
            found[alias.name] = str(statement.module)
    return found


def test_all_is_sorted_and_complete() -> None:
    """``__all__`` has every name once, in order, and each of them is there."""
    assert crosswalk.__all__ == sorted(set(crosswalk.__all__))
    for name in crosswalk.__all__:
        assert getattr(crosswalk, name) is not None
    assert set(crosswalk.__all__) <= set(dir(crosswalk))


def test_the_marks_of_hooks_are_there_and_not_told() -> None:
    """A type checker sees them, and a star does not bring them."""
    assert typed_imports().keys() - {*crosswalk.__all__} == {"hookimpl", "hookspec"}


@pytest.mark.untraced
@pytest.mark.parametrize(
    "name", sorted({*crosswalk.__all__} - {"convert"})
)  # a package that is called as its function
def test_a_name_is_that_of_its_home(name: str) -> None:
    """The face gives the same object as the module."""
    assert getattr(crosswalk, name) is getattr(import_module(typed_imports()[name]), name)


def test_what_only_authors_need_is_theirs() -> None:
    """The face is for users. Pluggy's marks are there under the project's name, and no name of it."""
    assert len(crosswalk.__all__) <= 97
    assert "hookimpl" not in crosswalk.__all__
    assert crosswalk.hookimpl is import_module("crosswalk.plugins").hookimpl


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'crosswalk' has no attribute 'nothing'"):
        _ = crosswalk.nothing


HEAVY = (
    "crosswalk_",
    "httpx",
    "httpcore",
    "rich",
    "pytest",
    "_pytest",
    "hypothesis",
    "yaml",
    "crosswalk.cli",
    "crosswalk.testing",
)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "program",
    [
        "import crosswalk",
        "from crosswalk import *",
        "import crosswalk; [p.name for p in crosswalk.registry.providers()]",
    ],
)
def test_importing_loads_no_plugin_no_http_no_cli(program: str) -> None:
    """Neither the package, nor all of its names, nor the list of providers."""
    loaded = loaded_by(program)
    assert not sorted(name for name in loaded if name.startswith(HEAVY))


def test_importing_is_light() -> None:
    """At most 130 modules, and cattrs only when JSON is read."""
    loaded = loaded_by("import crosswalk")
    assert len(loaded) <= 130
    assert not sorted(name for name in loaded if name.startswith(("cattrs", "attr", "pluggy", "orjson")))


@pytest.mark.sweep
@pytest.mark.parametrize(("provider", "other"), [("ollama", "vllm"), ("vllm", "ollama")])
def test_normalizing_loads_one_plugin(provider: str, other: str) -> None:
    """Only the provider that is named, and no JSON schema or converter for it."""
    body = '{"error": "gone"}'
    loaded = loaded_by(f"import crosswalk; crosswalk.normalize({body!r}, {provider!r}, status=404)")
    assert f"crosswalk_{provider}" in loaded
    assert f"crosswalk_{other}" not in loaded
    assert not sorted(name for name in loaded if name.startswith(("cattrs", *HEAVY[1:])))


PACKAGES = (
    "crosswalk",
    "crosswalk.codec",
    "crosswalk.mapping",
    "crosswalk.plugins",
    "crosswalk.service",
    "crosswalk.testing",
)
VALUES = sorted(
    {
        value
        for package in map(import_module, PACKAGES)
        for name in package.__all__
        if attrs.has(value := getattr(package, name)) and isinstance(value, type)
    },
    key=lambda value: value.__qualname__,
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__qualname__)
def test_the_fields_of_a_value_can_be_resolved(value: type) -> None:
    """As cattrs and readers of annotations do, also for annotations that name a type that is loaded on use."""
    assert typing.get_type_hints(value).keys() >= {field.name for field in attrs.fields(value)}

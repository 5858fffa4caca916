"""Reads the gateway's file: YAML into the types of :mod:`crosswalk_serve.config`. Errors name the line and the key."""

from __future__ import annotations

import difflib
import os
import re
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal

import attrs
import yaml

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service import Secret
from crosswalk_serve.config import Config, KeyHash, Listen, Model, Target

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_PLACEHOLDER: Final = re.compile("\ue000(\\w+)\ue001")
"""A variable without characters that end a plain text of YAML within braces."""
_TAG: Final = "tag:yaml.org,2002:"
_DEEPEST: Final = 64


def load_config(path: Path | str, environ: Mapping[str, str] | None = None) -> Config:
    """Read the configuration from the file *path*.

    Args:
        path: the file, YAML in UTF-8.
        environ: the values for ``${NAME}`` in it, or ``None`` for the process's environment.

    Raises:
        ConfigurationError: the file is wrong or cannot be read. The error names file, line and key, and quotes no value.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}", source=str(path)) from None
    return read_config(text, source=str(path), environ=environ)


def read_config(
    text: bytes | str, *, source: str = "<config>", environ: Mapping[str, str] | None = None
) -> Config:
    """Parse the configuration in *text*. Errors call it *source*. Otherwise like :func:`load_config`."""
    reader = _Reader(source, os.environ if environ is None else environ)
    node = _composed(text, source)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigurationError(f"{source}: expected a mapping with `models`", source=source)
    config: Config = reader.read(Config, node, ())
    return config


def located(error: ConfigurationError, path: Path | str) -> ConfigurationError:
    """Return *error*, which names a key of the file *path*, with the file and the line of that key.

    An error that names its file is returned as it is.
    """
    if error.source is not None or not error.key:
        return error
    root = _composed(Path(path).read_bytes(), str(path))
    result = _deepest(root, error.key)
    where = str(path) if result is root or result is None else f"{path}, line {result.start_mark.line + 1}"
    return ConfigurationError(f"{where}: {error}", key=error.key, source=str(path))


def _deepest(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the node of the last part of the path *key* that is below *node*, or *node* itself."""
    result, remainder = node, f"{key}."
    while isinstance(node, yaml.MappingNode):
        keys = [(name, of) for name, of in node.value if remainder.startswith(f"{name.value}.")]
        if not keys:
            break
        result, node = max(keys, key=lambda one: len(one[0].value))
        remainder = remainder.removeprefix(f"{result.value}.")
    return result


def _composed(text: bytes | str, source: str) -> yaml.Node | None:
    """Parse *text* as YAML.

    Raises:
        ConfigurationError: it is not YAML.
    """
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return yaml.compose(_VARIABLE.sub("\ue000\\1\ue001", plain), yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"{source}{where}: not YAML", source=source) from None


Path_ = tuple[str, ...]


@attrs.frozen
class _Reader:
    """Reads the nodes of one file.

    Attributes:
        source: the name of the file in errors.
        environ: the values for ``${NAME}``.
    """

    source: str
    environ: Mapping[str, str]

    def wrong(self, node: yaml.Node, path: Path_, what: str) -> ConfigurationError:
        """Return the error *what* about *node*, which is at *path*."""
        key = ".".join(path)
        text = f"{self.source}, line {node.start_mark.line + 1}: {key + ': ' if key else ''}{what}"
        return ConfigurationError(text, key=key, source=self.source)

    def read(self, kind: Any, node: yaml.Node, path: Path_) -> Any:
        """Return *node* as a value of the type *kind*."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (UnionType, typing.Union):
            (kind,) = (one for one in arguments if one is not NoneType)
            return self.read(kind, node, path)
        if origin is Literal:
            word = self._scalar(node)
            if word not in arguments:
                raise self.wrong(node, path, f"expected {' or '.join(map(str, arguments))}")
            return word
        if origin is tuple or origin is frozenset:
            is_alone = isinstance(node, yaml.MappingNode) and attrs.has(arguments[0])
            items = [node] if is_alone else self._items(node, path)
            return origin(self.read(arguments[0], item, (*path, str(n))) for n, item in enumerate(items))
        if kind is Any or (origin is not None and arguments[-1] is Any):
            value = self._plain(node, path, 0)
            if kind is not Any and not isinstance(value, dict):
                raise self.wrong(node, path, "expected a mapping")
            return value
        if origin is not None:
            return {key: self.read(arguments[1], of, (*path, key)) for key, of in self._entries(node, path)}
        if attrs.has(kind) and kind is not KeyHash:
            return self._section(kind, node, path)
        return self._value(kind, node, path)

    # Sections.

    def _section(self, kind: Any, node: yaml.Node, path: Path_) -> Any:
        entries = dict(self._entries(self._in_full(kind, node, path), path))
        fields = {field.name: field for field in attrs.fields(kind) if field.init}
        hints = typing.get_type_hints(kind)
        for name in entries:
            if name not in fields:
                known = {**fields, **attrs.fields_dict(Target)} if kind is Model else fields
                raise self.wrong(entries[name], (*path, name), f"unknown key{_meant(name, known)}")
        missing = [name for name, f in fields.items() if f.default is attrs.NOTHING and name not in entries]
        if missing:
            raise self.wrong(node, path, f"expected the key {missing[0]!r}")
        values = {
            name: self.read(hints[name], of, (*path, name))
            for name, of in entries.items()
            if not self._is_null(of) or fields[name].default is attrs.NOTHING
        }
        try:
            return kind(**values)
        except CrosswalkError as error:
            key = getattr(error, "key", None) or ""
            raise self.wrong(
                _deepest(node, key) or node, (*path, *filter(None, key.split("."))), str(error)
            ) from None

    def _in_full(self, kind: Any, node: yaml.Node, path: Path_) -> yaml.Node:
        """Return *node* without the short forms that *kind* may have."""
        if kind is Listen and isinstance(node, yaml.ScalarNode):
            host, colon, port = str(node.value).rpartition(":")
            if not colon or not port.isdecimal():
                raise self.wrong(node, path, "expected host:port, or a mapping")
            return _mapping(node, {"host": (host.strip("[]"), "str"), "port": (port, "int")})
        if kind is Model and isinstance(node, yaml.SequenceNode):
            return _mapping(node, {"endpoints": node})
        if kind is Model and isinstance(node, yaml.MappingNode):
            own = attrs.fields_dict(Model)
            remainder = [(key, of) for key, of in node.value if key.value not in own]
            if "endpoints" not in {key.value for key, _ in node.value}:
                known = attrs.fields_dict(Target)
                for key, of in remainder:
                    if key.value not in known:
                        text = f"unknown key{_meant(str(key.value), {**own, **known})}"
                        raise self.wrong(of, (*path, str(key.value)), text)
                one = yaml.MappingNode(node.tag, remainder, node.start_mark, node.end_mark)
                many = yaml.SequenceNode(f"{_TAG}seq", [one], node.start_mark, node.end_mark)
                whole = _mapping(node, {"endpoints": many})
                whole.value += [(key, of) for key, of in node.value if key.value in own]
                return whole
        return node

    def _entries(self, node: yaml.Node, path: Path_) -> Iterable[tuple[str, yaml.Node]]:
        if self._is_null(node):
            return
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, path, "expected a mapping")
        seen = set()
        for key, of in node.value:
            name = str(key.value)
            if name in seen or not isinstance(key, yaml.ScalarNode):
                what = "stands there twice" if name in seen else "expected a plain key"
                raise self.wrong(key, (*path, name) if name in seen else path, what)
            seen.add(name)
            yield name, of

    def _items(self, node: yaml.Node, path: Path_) -> list[yaml.Node]:
        if isinstance(node, yaml.ScalarNode):
            return [] if self._is_null(node) else [node]  # a single value
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, path, "expected a list")
        return list(node.value)

    # Values.

    def _value(self, kind: Any, node: yaml.Node, path: Path_) -> Any:
        if kind is Secret and isinstance(node, yaml.MappingNode):
            return self._secret_of_file(node, path)
        value = self._scalar(node)
        if kind is float and type(value) is int:
            value = float(value)
        if kind in (bool, int, float):
            if type(value) is not kind:
                word = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
                raise self.wrong(node, path, f"expected {word}")
            return value
        if type(value) is not str:
            hint = "; put it in quotes" if isinstance(node, yaml.ScalarNode) and value is not None else ""
            raise self.wrong(node, path, f"expected a text{hint}")
        text = self._filled(value, node, path)
        try:
            return kind.parse(text) if kind is KeyHash else kind(text)
        except (CrosswalkError, ValueError) as error:
            raise self.wrong(node, path, str(error)) from None

    def _secret_of_file(self, node: yaml.MappingNode, path: Path_) -> Secret:
        entries = dict(self._entries(node, path))
        if entries.keys() != {"file"}:
            raise self.wrong(node, path, "expected a text, or {file: PATH}")
        file = self._value(Path, entries["file"], (*path, "file"))
        try:
            return Secret(file.read_text("utf-8").strip())
        except OSError as error:
            raise self.wrong(node, (*path, "file"), str(error.strerror)) from None
        except (CrosswalkError, ValueError):
            raise self.wrong(node, (*path, "file"), "the file holds no credential") from None

    def _filled(self, text: str, node: yaml.Node, path: Path_) -> str:
        """Return *text* with the values of its ``${NAME}``."""

        def value(found: re.Match[str]) -> str:
            if found[1] not in self.environ:
                raise self.wrong(node, path, f"the environment has no {found[1]}")
            return self.environ[found[1]]

        return _PLACEHOLDER.sub(value, text)

    def _plain(self, node: yaml.Node, path: Path_, depth: int) -> Any:
        """Return *node* as plain JSON."""
        if depth > _DEEPEST:
            raise self.wrong(node, path, "nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return {key: self._plain(of, (*path, key), depth + 1) for key, of in self._entries(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(of, (*path, str(n)), depth + 1) for n, of in enumerate(node.value)]
        value = self._scalar(node)
        if isinstance(value, str):
            return self._filled(value, node, path)
        if value is not None and type(value) not in (bool, int, float):
            raise self.wrong(node, path, "expected what JSON has; put it in quotes")
        return value

    def _scalar(self, node: yaml.Node) -> Any:
        """Return the value of a scalar, or the node itself if it is not a scalar."""
        if not isinstance(node, yaml.ScalarNode):
            return node
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError):
            return node

    @staticmethod
    def _is_null(node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _mapping(node: yaml.Node, entries: Mapping[str, Any]) -> yaml.MappingNode:
    """Return a mapping in the place of *node*. A pair consists of a scalar and its type."""
    start, end = node.start_mark, node.end_mark

    def scalar(text: str, tag: str) -> yaml.ScalarNode:
        return yaml.ScalarNode(f"{_TAG}{tag}", text, start, end)

    made = [(scalar(key, "str"), scalar(*of) if isinstance(of, tuple) else of) for key, of in entries.items()]
    return yaml.MappingNode(f"{_TAG}map", made, start, end)


def _meant(word: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown *word*: the nearest known one, or else all of them."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"

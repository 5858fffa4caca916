"""The facts about a recorded answer beside its bytes: from a manifest, and from the name of its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import orjson

from crosswalk.errors import ConfigurationError

MANIFEST: Final = "MANIFEST.jsonl"
STATEMENT_SUFFIX: Final = ".says.json"
"""The end of the name of a file with statements about a capture."""


def read_recorded(file: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes of *file*, and the other facts of its :class:`~crosswalk.testing.Capture`.

    Raises:
        ConfigurationError: the manifest cannot be read.
    """
    folder, name = os.path.split(file)
    entry = manifest_of(folder).answers.get(os.path.realpath(file), {})
    stem, suffix = os.path.splitext(name)
    case = stem.removesuffix(".response")
    meta_path = os.path.join(folder, f"{case}.meta.json")
    if not entry and os.path.isfile(meta_path):
        entry = _checked(_said_in(meta_path), meta_path, meta_path)
    stream = entry.get("stream")
    capture_fields = {
        "case": case,
        "status": entry.get("status") or 200,
        "stream": suffix in {".sse", ".ndjson"} if stream is None else stream,
        "pair": entry.get("pair") or case.removesuffix("_stream"),
        "complete": entry.get("complete") is not False,
        "path": entry.get("path") or entry.get("request_path"),
        "server": entry.get("server") or entry.get("served_by"),
        "content_type": (entry.get("content_type") or "").partition(";")[0].strip().lower(),
    }
    return _bytes_of(file), capture_fields


def _bytes_of(file: str) -> bytes:
    with open(file, "rb") as opened_file:
        return opened_file.read()


def _said_in(path: str) -> bytes:
    try:
        return _bytes_of(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or type(error).__name__}", source=path) from None


class Manifest:
    """The content of a manifest.

    Attributes:
        answers: its entries, by the real paths of their files. The request of each, if it has one, is a real path, too.
        requests: the real paths of files with requests.
    """

    __slots__ = ("answers", "requests")

    def __init__(self, answers: dict[str, dict[str, Any]], requests: frozenset[str]) -> None:
        self.answers = answers
        self.requests = requests


def manifest_of(folder: str) -> Manifest:
    """The facts about the files in *folder*, from its manifest or the nearest one above it, if there is one.

    Raises:
        ConfigurationError: the manifest cannot be read.
    """
    folder = os.path.realpath(folder)
    for _ in range(5):
        manifest_path = os.path.join(folder, MANIFEST)
        if os.path.isfile(manifest_path):
            return _read_manifest(manifest_path, os.stat(manifest_path).st_mtime_ns)
        folder = os.path.dirname(folder)
    return Manifest({}, frozenset())


@lru_cache(maxsize=4)
def _read_manifest(manifest_path: str, _changed: int) -> Manifest:
    answers: dict[str, dict[str, Any]] = {}
    requests: set[str] = set()
    folder = os.path.dirname(manifest_path)
    for number, line in enumerate(_said_in(manifest_path).splitlines(), 1):
        entry = _checked(line, f"{manifest_path}:{number}", manifest_path, needed=("file",))
        request_path = entry.get("request") or entry.get("request_file")
        if request_path:
            entry["request"] = os.path.realpath(os.path.join(folder, request_path))
            requests.add(entry["request"])
        answers[os.path.realpath(os.path.join(folder, entry["file"]))] = entry
    return Manifest(answers, frozenset(requests))


def _no_text(value: object) -> str | None:
    if not isinstance(value, str):
        return "is not a string"
    return "has a NUL character in it" if "\0" in value else None


def _no_flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "is not true or false"


def _no_status(value: object) -> str | None:
    is_status = type(value) is int and 100 <= value <= 999
    return None if is_status else "is not an HTTP status from 100 to 999"


_TEXT_KEYS = (
    "file",
    "pair",
    "path",
    "request_path",
    "server",
    "served_by",
    "request",
    "request_file",
    "content_type",
)
_FAULT_CHECKS: Final[dict[str, Callable[[object], str | None]]] = {
    **dict.fromkeys(_TEXT_KEYS, _no_text),
    **dict.fromkeys(("stream", "complete"), _no_flag),
    "status": _no_status,
}
"""The keys of an entry in a manifest, each with a check of its value. ``null`` counts as absent."""


def _checked(text: bytes, place: str, source: str, *, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """The facts about one answer in a manifest.

    Raises:
        ConfigurationError: the entry is not a JSON object, or a value in it is wrong.
    """
    try:
        entry = orjson.loads(text)
    except orjson.JSONDecodeError:
        entry = None
    if not isinstance(entry, dict) or any(entry.get(name) is None for name in needed):
        needed_phrase = "".join(f' with "{name}" in it' for name in needed)
        raise ConfigurationError(f"{place}: not a JSON object{needed_phrase}", source=source)
    for name, fault_of in _FAULT_CHECKS.items():
        fault = None if entry.get(name) is None else fault_of(entry[name])
        if fault is not None:
            raise ConfigurationError(f'{place}: "{name}" {fault}', key=name, source=source)
    return entry

"""Recordings that are about to become captures: their files, and a draft of the statement about them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from crosswalk.drafts import written
from crosswalk.errors import FramingError, MappingError
from crosswalk.manifest import MANIFEST
from crosswalk.service.endpoint import encoded_forms
from crosswalk.testing.answers import LIMITS, options_of
from crosswalk.testing.captures import NAMES
from crosswalk.testing.perturbation import leaves, show_path
from crosswalk.text import holds_key
from crosswalk.types.values import ErrorKind
from crosswalk.wire.framing import Limits, SniffingDecoder, is_done, load_event

# -------------------------------------------------------------------------------- recorded
# Recordings: exchanges that are about to become captures, and the writing of their files.


_SUFFIXES: Final = {
    "application/json": ".json",
    "application/problem+json": ".json",
    "text/event-stream": ".sse",
    "application/x-ndjson": ".ndjson",
}


@attrs.define(kw_only=True)
class Recording:
    """A request, and the part of its answer that has arrived.

    Attributes:
        is_stream: whether a stream was requested.
        method: the HTTP method.
        path: the provider's own path, with its query.
        headers: the headers that the API needs apart from content type and credentials.
        request: the body as it was sent.
        status: the HTTP status, or ``None`` if no answer began.
        content_type: the content type that the server sent, or ``None`` if it sent none.
        body: the answer's bytes.
        is_complete: whether the body ended as HTTP requires.
    """

    is_stream: bool
    method: str
    path: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    request: bytes = attrs.field(repr=False)
    status: int | None = None
    content_type: str | None = None
    body: bytearray = attrs.field(factory=bytearray, repr=False)
    is_complete: bool = False

    def quotes(self, secrets: Iterable[str]) -> bool:
        """Whether the files to be written contain one of *secrets*, the values of headers."""
        file_contents = [self.request, bytes(self.body), f"{self.path} {self.content_type}".encode()]
        file_contents += [_ESCAPE.sub(_unescaped, text) for text in file_contents]
        for secret in secrets:
            key = secret.rpartition(" ")[2]
            key_pattern = re.compile(
                rb"(?<![\w-])%s(?![\w-])" % re.escape(key.encode())
            )  # it may be as short as EMPTY
            encoded_keys = [form.encode() for form in encoded_forms(key) if form != key]
            if any(
                key_pattern.search(text) or any(form in text for form in encoded_keys)
                for text in file_contents
            ):
                return True
        return False

    @property
    def holds_key(self) -> bool:
        """Whether the files to be written contain a text that looks like a key, no matter which."""
        body = bytes(self.body).decode(errors="replace")
        return holds_key(f"{self.request.decode()} {self.path} {self.content_type} {body}")

    @property
    def suffix(self) -> str:
        """The suffix of the file's name."""
        media_type = (self.content_type or "").partition(";")[0].strip().lower()
        return _SUFFIXES.get(media_type, ".txt")


def store_capture(
    folder: Path, case: str, recording: Recording, *, provider: str, pair: str | None = None
) -> Path:
    """Write *recording* as the capture *case*: its request, its answer, and the line about them.

    Args:
        folder: the folder to write to.
        case: its name there.
        recording: the exchange. Its answer has begun.
        provider: the provider id.
        pair: the name that it shares with the other form of the same answer, or ``None`` if there is no other form.

    Returns:
        The file of the answer.

    Raises:
        OSError: it cannot be written. No part of it is left on the disk then, and the name is free.
    """
    answer_file = folder / f"{case}.response{recording.suffix}"
    request_file = folder / f"{case}.request.json"
    entry = {
        "file": "",
        "server": provider,
        "method": recording.method,
        "path": recording.path.partition("?")[0],
        "request": "",
        "stream": recording.is_stream,
        "status": None if recording.status is None else min(recording.status, 599),
        "content_type": recording.content_type,
        "complete": recording.is_complete,
        "pair": pair or case,
    }
    files: list[Path] = []
    try:
        for file, data in ((request_file, recording.request), (answer_file, recording.body)):
            with written(file, replace=False) as out:
                out.write(data)
            files.append(file)
        _note(folder, entry, answer_file, request_file)
    except OSError:
        for file in files:
            file.unlink()
        raise
    return answer_file


def _note(folder: Path, entry: dict[str, Any], answer_file: Path, request_file: Path) -> None:
    """Add *entry* to the manifest, which names files relative to its own folder."""
    manifest = _manifest(folder)
    relative_folder = folder.resolve().relative_to(manifest.parent)
    file_fields = {
        "file": (relative_folder / answer_file.name).as_posix(),
        "request": (relative_folder / request_file.name).as_posix(),
    }
    with manifest.open("a+b") as manifest_file:
        end = manifest_file.seek(0, os.SEEK_END)
        manifest_file.seek(max(end - 1, 0))
        is_mid_line = manifest_file.read(1) not in (b"", b"\n")
        try:
            manifest_file.write(b"\n" * is_mid_line + orjson.dumps(entry | file_fields) + b"\n")
            manifest_file.flush()
        except OSError:
            manifest_file.truncate(end)  # half a line would make the whole manifest unreadable
            raise


def _manifest(folder: Path) -> Path:
    """Return the manifest that readers of the folder use: its own, or else the next one above, if there is one."""
    own_folder = folder.resolve()
    for candidate in (own_folder, *own_folder.parents[:4]):
        if (candidate / MANIFEST).is_file():
            return candidate / MANIFEST
    return own_folder / MANIFEST


_ESCAPE: Final = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|/)")


def _unescaped(match: re.Match[bytes]) -> bytes:
    """Return the character that JSON has escaped, as some servers do without need."""
    return bytes([int(match[1], 16)]) if match[1] else b"/"


# -------------------------------------------------------------------------------- drafting
# Draft a statement about a capture, from its bytes and its request, before there is a plugin.


_NOTE: Final = (
    "Correct each fact, from the values under 'found' and the provider's documents; null means that there is none, "
    "but 'finish' and 'complete' need a value. Then remove 'draft' and 'found'."
)
_LONGEST: Final = 2_000
"""The number of characters of a value that are shown."""


def draft_statement(
    body: bytes, *, request: bytes | None = None, status: int = 200, complete: bool = True
) -> dict[str, Any]:
    """Draft the statement about an answer.

    Only facts that need no mapping are filled in: an HTTP error, a body that was cut, the requested model if the answer
    names it, and ``length`` if the answer has a count that equals the requested limit. All other values of the payload
    are listed under ``found``, by their paths, for the author to choose from.

    Args:
        body: the bytes of the answer.
        request: the body of the request, or ``None`` if it is unknown.
        status: the HTTP status.
        complete: whether the body ended as HTTP requires.
    """
    events = _events(body)
    facts: dict[str, Any] = {name: None for name in NAMES if name not in ("retryable", "raises")}
    values = [leaf.value for leaf in leaves(events)]
    options = dict(options_of(request))
    if options.get("model") in values:
        facts["model"] = options["model"]
    if any(options[name] in values for name in LIMITS & options.keys()):
        facts |= {"finish": "length", "complete": False}
    if status >= 400:
        kind = _kind_of(status)
        facts |= {
            "finish": "error",
            "complete": False,
            "error": kind,
            "retryable": status == 429 or status >= 500,
        }
    elif not complete:
        facts |= {"finish": "error", "complete": False, "raises": "IncompleteStreamError"}
    return {"draft": _NOTE, **facts, "found": _found(events)}


def _kind_of(status: int) -> str:
    if status >= 500:
        return ErrorKind.SERVER
    kinds = {401: ErrorKind.AUTHENTICATION, 403: ErrorKind.PERMISSION, 429: ErrorKind.RATE_LIMIT}
    return kinds.get(status, ErrorKind.INVALID_REQUEST)


def _events(body: bytes) -> list[Any]:
    """Return the decoded events of *body*. There are none if only one provider has its framing."""
    decoder = SniffingDecoder(Limits())
    try:
        frames = [*decoder.decode(body), *decoder.flush()]
        return [_event(data, name) for data, name in frames if data and not is_done(data)]
    except MappingError:
        return []


def _event(data: bytes, name: str | None) -> Any:
    """Return the event of a frame. One with a name may carry text, which is shown in the format of ``text_events``."""
    try:
        return load_event(data, Limits(), place="draft", halves="mend")
    except FramingError:
        if name is None:
            raise
        return {"data": data.decode(errors="replace")}


def _found(events: list[Any]) -> dict[str, Any]:
    """Return the values of *events* by their paths: consecutive texts joined, for other values the last one."""
    values_by_path: dict[str, Any] = {}
    for leaf in leaves(events):
        path, value = show_path(leaf.path, items=False), leaf.value
        earlier_value = values_by_path.get(path)
        is_piece = isinstance(value, str) and isinstance(earlier_value, str) and value != earlier_value
        values_by_path[path] = f"{earlier_value}{value}" if is_piece else value
    return {
        path: f"{value[:_LONGEST]}…" if isinstance(value, str) and len(value) > _LONGEST else value
        for path, value in values_by_path.items()
    }

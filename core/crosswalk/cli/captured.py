"""Captures that are being made: what came of an exchange, and the folder that it goes into."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self

import attrs
import orjson

from crosswalk.cli.drafts import written
from crosswalk.cli.exits import UsageError
from crosswalk.service.redaction import encoded_forms
from crosswalk.testing.captures import capture_files
from crosswalk.text import holds_key

__all__ = ["Exchange", "Folder"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_MANIFEST: Final = "MANIFEST.jsonl"
_SUFFIXES: Final = {
    "application/json": ".json",
    "application/problem+json": ".json",
    "text/event-stream": ".sse",
    "application/x-ndjson": ".ndjson",
}


@attrs.define(kw_only=True)
class Exchange:
    """A request, and as much of its answer as has come.

    Attributes:
        is_stream: whether a stream was asked for.
        method: the HTTP method.
        path: the provider's own path, with its query.
        headers: what the API wants beside content type and credentials.
        request: the body as it was sent.
        status: the HTTP status; ``None`` where no answer began.
        content_type: what the server says that it sends; ``None`` where it does not.
        body: the answer's bytes.
        is_complete: whether the body ended as HTTP wants it.
        is_interrupted: whether the user ended it.
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
    is_interrupted: bool = False

    def quotes(self, secrets: Iterable[str]) -> bool:
        """Whether one of *secrets*, the values of headers, stands in what would be written."""
        written = [self.request, bytes(self.body), f"{self.path} {self.content_type}".encode()]
        written += [_ESCAPE.sub(_unescaped, text) for text in written]
        for secret in secrets:
            key = secret.rpartition(" ")[2]
            word = re.compile(
                rb"(?<![\w-])%s(?![\w-])" % re.escape(key.encode())
            )  # it may be as short as EMPTY
            forms = [form.encode() for form in encoded_forms(key) if form != key]
            if any(word.search(text) or any(form in text for form in forms) for text in written):
                return True
        return False

    @property
    def holds_key(self) -> bool:
        """Whether what would be written holds what looks like a key, whosever it is."""
        body = bytes(self.body).decode(errors="replace")
        return holds_key(f"{self.request.decode()} {self.path} {self.content_type} {body}")

    def rescued(self) -> Path:
        """A file in the system's folder for temporary ones with the body, which could not be stored.

        Raises:
            UsageError: that cannot be written either.
        """
        try:
            with NamedTemporaryFile("wb", prefix="crosswalk-", suffix=self.suffix, delete=False) as out:
                out.write(self.body)
                return Path(out.name)
        except OSError as error:
            raise UsageError(f"the answer is lost: {error.strerror or type(error).__name__}") from None

    @property
    def suffix(self) -> str:
        """How the file's name ends."""
        kind = (self.content_type or "").partition(";")[0].strip().lower()
        return _SUFFIXES.get(kind, ".txt")


@attrs.frozen
class Folder:
    """Where captures of one name go.

    Attributes:
        path: the folder.
        name: the case, without what marks a stream.
    """

    path: Path
    name: str

    @classmethod
    def opened(cls, path: str, name: str, forms: Sequence[bool]) -> Self:
        """The folder, created if it is missing, without a capture of that name.

        Args:
            path: the folder.
            name: the case.
            forms: what is to be stored there, streams (``True``) or whole answers.

        Raises:
            UsageError: the name is none, or taken; the folder cannot be made.
            ConfigurationError: the folder's manifest cannot be read.
        """
        if not _NAME.fullmatch(name):
            raise UsageError("--name: letters, digits, and - or _ between them, 100 at most")
        folder = cls(Path(path), name.removesuffix("_stream"))
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            taken = {file.name.partition(".")[0] for file in folder.path.iterdir()}
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None
        for case in map(folder.case_of, forms):
            if case in taken:
                raise UsageError(f"{path}: there is a capture {case} already")
        list(capture_files(folder.path))  # reads the manifest
        return folder

    def case_of(self, is_stream: bool) -> str:
        """The case's name for a stream or a whole answer."""
        return f"{self.name}_stream" if is_stream else self.name

    def store(self, exchange: Exchange, *, provider: str, is_pair: bool) -> Path:
        """Write *exchange*; gives the file with the answer.

        Args:
            exchange: what came; its answer has begun.
            provider: the provider id.
            is_pair: whether it is one of two forms of the same answer.

        Raises:
            OSError: it cannot be written; nothing of it is then there, and the name is free.
        """
        case = self.case_of(exchange.is_stream)
        answer = self.path / f"{case}.response{exchange.suffix}"
        request = self.path / f"{case}.request.json"
        entry = {
            "file": "",
            "server": provider,
            "method": exchange.method,
            "path": exchange.path.partition("?")[0],
            "request": "",
            "stream": exchange.is_stream,
            "status": None if exchange.status is None else min(exchange.status, 599),
            "content_type": exchange.content_type,
            "complete": exchange.is_complete,
            "pair": self.name if is_pair else case,
        }
        stored: list[Path] = []
        try:
            for file, data in ((request, exchange.request), (answer, exchange.body)):
                with written(file, replace=False) as out:
                    out.write(data)
                stored.append(file)
            self._note(entry, answer, request)
        except OSError:
            for file in stored:
                file.unlink()
            raise
        return answer

    def _note(self, entry: dict[str, Any], answer: Path, request: Path) -> None:
        """Add *entry* to the manifest, where files are named from its own folder."""
        manifest = self._manifest()
        below = self.path.resolve().relative_to(manifest.parent)
        named = {"file": (below / answer.name).as_posix(), "request": (below / request.name).as_posix()}
        with manifest.open("a+b") as opened:
            end = opened.seek(0, os.SEEK_END)
            opened.seek(max(end - 1, 0))
            is_in_line = opened.read(1) not in (b"", b"\n")
            try:
                opened.write(b"\n" * is_in_line + orjson.dumps(entry | named) + b"\n")
                opened.flush()
            except OSError:
                opened.truncate(end)  # half a line would make the whole manifest unreadable
                raise

    def _manifest(self) -> Path:
        """The manifest that readers of the folder look into: its own, or else the next one above, if there is one."""
        here = self.path.resolve()
        for folder in (here, *here.parents[:4]):
            if (folder / _MANIFEST).is_file():
                return folder / _MANIFEST
        return here / _MANIFEST


_ESCAPE: Final = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|/)")


def _unescaped(found: re.Match[bytes]) -> bytes:
    """The character that JSON has escaped, as some servers do without need."""
    return bytes([int(found[1], 16)]) if found[1] else b"/"

"""Recorded exchanges as files: what a server sent, byte for byte, and what is known about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs
import orjson

from crosswalk.errors import ConfigurationError, FramingError
from crosswalk.wire import Frame, Limits, SniffingDecoder, is_done, load_event

__all__ = ["Capture", "capture_files", "load_capture", "load_captures", "pairs", "reframed"]

_SUFFIXES = (".json", ".sse", ".ndjson", ".txt")
_MANIFEST = "MANIFEST.jsonl"


@attrs.frozen
class Capture:
    """A recorded answer.

    Attributes:
        case: its name inside its folder.
        file: where its bytes lie.
        body: what the server sent.
        status: the HTTP status.
        stream: whether it was asked for, and answered, as a stream.
        pair: the name that it shares with the other form, whole or streamed, of the same answer.
        complete: whether the body ended as the server meant it to.
        path: the HTTP path that was asked; ``None`` when unknown.
        server: who answered, in the recorder's words; ``None`` when unknown.
    """

    case: str
    file: Path
    body: bytes = attrs.field(repr=False)
    status: int = 200
    stream: bool = False
    pair: str = ""
    complete: bool = True
    path: str | None = None
    server: str | None = None

    def frames(self) -> list[Frame]:
        """The undecoded events, in order, without end sentinels and empty keep-alives."""
        decoder = SniffingDecoder(Limits())
        frames = [*decoder.decode(self.body), *decoder.flush()]
        return [(data, name) for data, name in frames if data and not is_done(data)]

    def events(self) -> list[Any]:
        """The decoded events, in order.

        Raises:
            FramingError: one is not JSON.
        """
        if self.status >= 400:
            return [orjson.loads(self.body)]
        return [load_event(data, Limits(), place=self.case) for data, _ in self.frames()]

    @property
    def is_json(self) -> bool:
        """Whether every event can be decoded."""
        try:
            return bool(self.events())
        except (FramingError, orjson.JSONDecodeError):
            return False

    def __str__(self) -> str:
        return self.case


def load_captures(folder: Path | str, *, paths: Iterable[str] = ()) -> list[Capture]:
    """The captures in *folder*, sorted by name; folders inside it are not looked into.

    A capture is a file ``CASE.response.json`` (or ``.sse``, ``.ndjson``, ``.txt``; ``.response`` may be left
    out). What its name does not say stands in ``MANIFEST.jsonl``, a line each with ``file``, ``status``,
    ``pair``, ``stream``, ``complete``, ``path`` and ``server``, in the folder or one above it; or in ``CASE.meta.json``.
    Without either an answer has status 200, and ``CASE_stream`` is the streamed form of ``CASE``.

    Args:
        folder: where they lie.
        paths: keep only answers of these HTTP paths; empty for all.

    Raises:
        ConfigurationError: there is no such folder, or its manifest cannot be read.
    """
    wanted = set(paths)
    captures = map(load_capture, capture_files(folder))
    return [capture for capture in captures if not wanted or capture.path in wanted]


def capture_files(folder: Path | str) -> Iterator[Path]:
    """The files in *folder* that :func:`load_captures` reads: all but requests, by suffix or by the manifest.

    Raises:
        ConfigurationError: there is no such folder, or its manifest cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigurationError(f"no folder of captures at {folder}", source=str(folder))
    requests = _manifest(folder).requests
    for file in sorted(folder.iterdir()):
        is_other = file.name.endswith((".request.json", ".meta.json")) or file.resolve() in requests
        if file.suffix in _SUFFIXES and file.is_file() and not is_other:
            yield file


def load_capture(file: Path | str) -> Capture:
    """The capture in *file*, with what a manifest says about it, if there is one.

    Raises:
        ConfigurationError: the manifest cannot be read.
    """
    file = Path(file)
    return _load(file, _manifest(file.parent).answers.get(file.resolve(), {}))


@attrs.frozen
class _Manifest:
    answers: dict[Path, dict[str, Any]]
    requests: frozenset[Path]


def _manifest(folder: Path) -> _Manifest:
    folder = folder.resolve()
    for root in (folder, *folder.parents[:4]):
        manifest = root / _MANIFEST
        if manifest.is_file():
            return _read_manifest(manifest, manifest.stat().st_mtime_ns)
    return _Manifest({}, frozenset())


@lru_cache(maxsize=4)
def _read_manifest(manifest: Path, _changed: int) -> _Manifest:
    answers: dict[Path, dict[str, Any]] = {}
    requests: set[Path] = set()
    for number, line in enumerate(manifest.read_bytes().splitlines(), 1):
        try:
            entry = orjson.loads(line)
            answers[(manifest.parent / entry["file"]).resolve()] = entry
            request = entry.get("request") or entry.get("request_file")
        except (orjson.JSONDecodeError, KeyError, TypeError):
            cause = 'no JSON object with "file" in it'
            raise ConfigurationError(f"{manifest}:{number}: {cause}", source=str(manifest)) from None
        if isinstance(request, str):
            requests.add((manifest.parent / request).resolve())
    return _Manifest(answers, frozenset(requests))


def _load(file: Path, known: dict[str, Any]) -> Capture:
    case = file.name.removesuffix(file.suffix).removesuffix(".response")
    meta = file.with_name(f"{case}.meta.json")
    if not known and meta.is_file():
        try:
            known = dict(orjson.loads(meta.read_bytes()))
        except (TypeError, ValueError):
            raise ConfigurationError(f"{meta}: no JSON object", source=str(meta)) from None
    stream = known.get("stream")
    if stream is None:
        stream = file.suffix in {".sse", ".ndjson"}
    return Capture(
        case=case,
        file=file,
        body=file.read_bytes(),
        status=known.get("status") or 200,
        stream=bool(stream),
        pair=known.get("pair") or case.removesuffix("_stream"),
        complete=known.get("complete", True),
        path=known.get("path") or known.get("request_path"),
        server=known.get("server") or known.get("served_by"),
    )


def pairs(captures: Iterable[Capture]) -> list[tuple[Capture, Capture]]:
    """The answers that were recorded whole and streamed, each as (whole, streamed)."""
    by_pair: dict[str, tuple[list[Capture], list[Capture]]] = {}
    for capture in captures:
        by_pair.setdefault(capture.pair, ([], []))[capture.stream].append(capture)
    return [pair for both in by_pair.values() for pair in itertools.product(*both)]


def reframed(
    capture: Capture, frames: Sequence[Frame], events: Sequence[Any], changed: Sequence[Any]
) -> bytes:
    """The body of *capture* with other events; an event that was not changed keeps its bytes.

    Args:
        capture: the recorded answer, for its framing.
        frames: its frames; empty for an HTTP error.
        events: the decoded events of *frames*.
        changed: as many events, some of them others.
    """
    if not frames or (len(frames) == 1 and not capture.stream):
        return orjson.dumps(changed[0])
    is_sse = not capture.body.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    lines = []
    for (data, named), event, now in zip(frames, events, changed, strict=False):
        data = data if now is event else orjson.dumps(now)
        name = b"" if named is None else b"event: %s\n" % named.encode()
        lines.append(name + b"data: " + b"\ndata: ".join(data.split(b"\n")) if is_sse else data)
    return b"".join(line + (b"\n\n" if is_sse else b"\n") for line in lines)

"""Recorded exchanges as files: the server's answer, byte for byte, and the facts known about it."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import orjson

from crosswalk.errors import ConfigurationError, FramingError
from crosswalk.manifest import STATEMENT, manifest_of, read_recorded
from crosswalk.testing.statements import read_statement
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import Frame, Limits, NeedMore, SniffingDecoder, is_done

if TYPE_CHECKING:
    from crosswalk.plugin.registry import Mapper


_SUFFIXES = (".json", ".sse", ".ndjson", ".txt")
_OTHERS = (".request.json", ".meta.json", STATEMENT)
_BEFORE = b"\xef\xbb\xbf \r\n\t"
"""Bytes that may come before the first byte that identifies the framing."""

Write: TypeAlias = Callable[[bytes, str | None], bytes]
"""Writes one frame of a provider's own framing, from an event's data and its name."""


@attrs.frozen
class Capture:
    """A recorded answer.

    Attributes:
        case: its name inside its folder.
        file: the file with its bytes.
        body: the bytes that the server sent.
        status: the HTTP status.
        stream: whether it was requested, and sent, as a stream.
        pair: the name that it shares with the other form, whole or streamed, of the same answer.
        complete: whether the body ended as the server meant it to.
        path: the HTTP path of the request, or ``None`` if unknown.
        server: the name of the server, in the recorder's words, or ``None`` if unknown.
        content_type: the media type of the answer, without parameters, or ``""`` if unknown.
        says: the author's statement about the answer, or ``None`` if nothing is stated.
        request: the body of the request, or ``None`` if it was not recorded.
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
    content_type: str = ""
    says: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)
    request: bytes | None = attrs.field(default=None, repr=False)

    def frames(self, mapper: Mapper | None = None) -> list[Frame]:
        """Return the undecoded events, in order, without end sentinels and empty keep-alives.

        Args:
            mapper: the provider, which may have its own framing; ``None`` for SSE, NDJSON and JSON alone.

        Raises:
            MappingError: the bytes are not frames.
        """
        decoder = SniffingDecoder() if mapper is None else mapper.new_decoder(content_type=self.content_type)
        frames = [*decoder.decode(self.body), *decoder.flush()]
        return [(data, name) for data, name in frames if data and not is_done(data)]

    def has_own_framing(self, mapper: Mapper) -> bool:
        """Whether the body is in the provider's own framing."""
        own, start = mapper.info.framing, self.body.lstrip(_BEFORE)
        if own is None or not start or self.status >= 400:
            return False
        decoder = own(start, Limits(), self.content_type)
        return decoder is not None and not isinstance(decoder, NeedMore)

    def events(self, mapper: Mapper | None = None) -> list[Any]:
        """Return the decoded events, in order.

        Args:
            mapper: as for :meth:`frames`.

        Raises:
            FramingError: an event is not JSON.
        """
        if self.status >= 400:
            return [orjson.loads(self.body)]
        return [load_event(data, Limits(), place=self.case, halves="mend") for data, _ in self.frames(mapper)]

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
    """Load the captures in *folder*, sorted by name. Folders inside it are not searched.

    A capture is a file ``CASE.response.json`` (or ``.sse``, ``.ndjson``, ``.txt``; ``.response`` may be left
    out). Facts that its name does not contain are in ``MANIFEST.jsonl``, a line each with ``file``, ``status``,
    ``pair``, ``stream``, ``complete``, ``path`` and ``server``, in the folder or one above it, or in
    ``CASE.meta.json``. Without either an answer has status 200, and ``CASE_stream`` is the streamed form of ``CASE``.
    ``CASE.says.json`` states the content of the answer, see :mod:`crosswalk.testing.statements`.

    Args:
        folder: the folder of the files.
        paths: keep only answers of these HTTP paths; empty for all.

    Raises:
        ConfigurationError: the folder does not exist, or its manifest cannot be read.
    """
    wanted = set(paths)
    captures = map(load_capture, capture_files(folder))
    return [capture for capture in captures if not wanted or capture.path in wanted]


def capture_files(folder: Path | str) -> Iterator[Path]:
    """Yield the files in *folder* that :func:`load_captures` reads: all but requests, by suffix or by the manifest.

    Raises:
        ConfigurationError: the folder does not exist, or its manifest cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigurationError(f"no folder of captures at {folder}", source=str(folder))
    requests = manifest_of(str(folder)).requests
    for file in sorted(folder.iterdir()):
        is_other = file.name.endswith(_OTHERS) or os.path.realpath(file) in requests
        if file.suffix in _SUFFIXES and is_file(file) and not is_other:
            yield file


def is_file(path: Path) -> bool:
    """Whether *path* is a file, as far as can be seen. Reading a file that is out of reach raises the error."""
    try:
        return path.is_file()
    except OSError:
        return True


def load_capture(file: Path | str) -> Capture:
    """Read the capture in *file*, with its line in the manifest and its statement, if there are any.

    Raises:
        ConfigurationError: the manifest or the statement cannot be read.
    """
    file = Path(file)
    body, known = read_recorded(str(file))
    says, request = read_statement(file, known["case"]), _read_request(file, known["case"])
    return Capture(body=body, file=file, says=says, request=request, **known)


def _read_request(file: Path, case: str) -> bytes | None:
    """Read the request whose answer is *file*: from the file in its line of the manifest, or ``CASE.request.json``."""
    entry = manifest_of(str(file.parent)).answers.get(str(file.resolve()), {})
    request = Path(entry.get("request") or file.with_name(f"{case}.request.json"))
    return request.read_bytes() if is_file(request) else None


def pairs(captures: Iterable[Capture]) -> list[tuple[Capture, Capture]]:
    """Return the answers that were recorded whole and streamed, each as (whole, streamed)."""
    by_pair: dict[str, tuple[list[Capture], list[Capture]]] = {}
    for capture in captures:
        by_pair.setdefault(capture.pair, ([], []))[capture.stream].append(capture)
    return [pair for both in by_pair.values() for pair in itertools.product(*both)]


def reframer(
    capture: Capture,
    frames: Sequence[Frame],
    events: Sequence[Any],
    *,
    as_sse: bool = False,
    write: Write | None = None,
    text_events: Collection[str] = (),
) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that writes the body of *capture* with other events.

    Args:
        capture: the recorded answer, for its framing.
        frames: its frames; empty for an HTTP error.
        events: the decoded events of *frames*.
        as_sse: whether to write server-sent events regardless of the framing of the capture.
        write: writes a frame in the provider's own framing. It is used instead of server-sent events.
        text_events: the names of events whose data is text.

    Returns:
        A function of any number of events. An event that was not changed keeps its data. It raises ``FramingError`` for
        an event that the framing cannot carry.
    """
    if not frames:
        return lambda changed: written(changed[0])
    is_sse = as_sse or not capture.body.lstrip(_BEFORE).startswith(b"{")
    is_body = len(frames) == 1 and not capture.stream and not as_sse
    size = len(frames)

    def framed(data: bytes, named: str | None) -> bytes:
        if as_sse and write is not None:
            return write(data, named)
        if not is_sse:
            return data + b"\n"
        if named in text_events:
            data = _text_of(data)
        name = b"" if named is None else b"event: %s\n" % named.encode()
        return name + b"data: " + b"\ndata: ".join(data.split(b"\n")) + b"\n\n"

    @cache
    def kept(number: int) -> bytes:
        data, named = frames[number]
        return framed(data if is_sse or b"\n" not in data else written(events[number]), named)

    def body(changed: Sequence[Any]) -> bytes:
        if is_body and len(changed) == 1:
            return written(changed[0])
        # Events beyond the last frame repeat the frames from the start.
        return b"".join(
            kept(number % size)
            if now is events[number % size]
            else framed(written(now), frames[number % size][1])
            for number, now in enumerate(changed)
        )

    return body


def _text_of(data: bytes) -> bytes:
    """Return the text of an event that carries nothing else.

    Raises:
        FramingError: it carries something else, or a text with a line end that server-sent events cannot carry.
    """
    event = orjson.loads(data)
    text = event.get("data") if isinstance(event, dict) and len(event) == 1 else None
    if not isinstance(text, str) or "\r" in text:
        raise FramingError("an event of text carries one text, without a carriage return")
    return text.encode()


def written(value: Any) -> bytes:
    """Return *value* as JSON, with all digits of integers that orjson does not write."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

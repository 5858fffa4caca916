"""The recorded answers that a command line names: files, folders, standard input, and logs in JSON Lines."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from crosswalk.cli.terminal import UsageError, say
from crosswalk.errors import ConfigurationError
from crosswalk.manifest import MANIFEST, STATEMENT_SUFFIX, read_recorded
from crosswalk.wire.framing import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from crosswalk.records import Layout, Line, LoggedExchange, Record
    from crosswalk.testing.captures import Capture


_STDIN: Final = "-"
_RECORDS_SUFFIX: Final = ".jsonl"
_CHUNK_BYTES: Final = MIB


class InputSource:
    """A file or standard input.

    Attributes:
        file: its path, or ``None`` for standard input.
        records: whether each line is a record.
        root: the searched folder that it was found in, or ``None`` if the file itself was named.
    """

    __slots__ = ("file", "records", "root")

    def __init__(self, file: str | None, records: bool, root: Path | None = None) -> None:
        self.file = file
        self.records = records
        self.root = root

    @property
    def path(self) -> Path | None:
        """The file, or ``None`` for standard input."""
        from pathlib import Path

        return None if self.file is None else Path(self.file)

    @property
    def name(self) -> str:
        """Its name in a report."""
        return "standard input" if self.file is None else self.file

    @property
    def size(self) -> int | None:
        """Its size in bytes, or ``None`` if it is not a file, or no longer exists."""
        try:
            return None if self.file is None else os.stat(self.file).st_size
        except OSError:
            return None


class RecordedAnswer:
    """One recorded answer.

    Attributes:
        place: its place, for reports: ``file`` or ``file:line``.
        chunks: its bytes, which can be read once.
        status: the HTTP status, or ``None`` if unknown.
        provider: the provider id, or ``None`` if unknown.
        server: the server's name in the recording, which decides if the bytes fit several providers. ``None`` if unknown.
        id: its name in the recording, or ``None`` if it has none.
        size: the number of bytes of the source that it takes.
        record: its record, or ``None`` if it is a file of its own.
        is_guess: whether *provider* was detected although the answer fits others too.
    """

    __slots__ = (
        "chunks", "id", "is_guess", "place", "provider", "record", "server", "size", "status",
    )  # fmt: skip

    def __init__(
        self,
        place: str,
        chunks: Iterable[bytes],
        status: int | None = None,
        *,
        provider: str | None = None,
        server: str | None = None,
        id: str | None = None,
        size: int = 0,
        record: Record | None = None,
        is_guess: bool = False,
    ) -> None:
        self.place = place
        self.chunks = chunks
        self.status = status
        self.provider = provider
        self.server = server
        self.id = id
        self.size = size
        self.record = record
        self.is_guess = is_guess

    @property
    def label(self) -> str:
        """Its place, and its id if it has one."""
        return f"{self.place} ({self.id})" if self.id else self.place


class InputFault:
    """Input that is not an answer.

    Attributes:
        place: its place, as for an answer.
        cause: the reason.
        size: the number of bytes of the source that it takes.
        line: the line of the log, without its end, or empty if it is not a line, or too long to be kept.
        exchange: the facts of the line, or ``None`` if it has none.
        is_exchange: whether it should be one. If not, *cause* says what it is.
    """

    __slots__ = ("cause", "exchange", "is_exchange", "line", "place", "size")

    def __init__(
        self,
        place: str,
        cause: str,
        size: int = 0,
        line: bytes = b"",
        exchange: LoggedExchange | None = None,
        *,
        is_exchange: bool = True,
    ) -> None:
        self.place = place
        self.cause = cause
        self.size = size
        self.line = line
        self.exchange = exchange
        self.is_exchange = is_exchange


def records_of(arguments: argparse.Namespace) -> bool | None:
    """Whether files hold records, from *arguments*, or ``None`` if their names decide.

    Raises:
        UsageError: the options contradict each other.
    """
    has_layout = arguments.layout is not None or bool(arguments.field)
    if has_layout and arguments.records is False:
        raise UsageError("--layout and --field are for records: without --no-records")
    records: bool | None = arguments.records
    return True if has_layout else records


def find_sources(
    paths: Iterable[str], *, records: bool | None, without: Path | None = None
) -> tuple[list[InputSource], list[InputFault]]:
    """The sources that *paths* name, and a fault for each folder that has none or cannot be read.

    Args:
        paths: files, folders, and ``-`` for standard input, or empty for standard input only.
        records: whether they hold records; ``None`` means that their content decides.
        without: a folder to leave out, or ``None`` to search all.

    Raises:
        UsageError: a path does not exist.
    """
    sources: list[InputSource] = []
    faults: list[InputFault] = []
    for path in list(paths) or [_STDIN]:
        if path == _STDIN:
            sources.append(InputSource(None, records is True))
        elif os.path.isdir(path):
            from pathlib import Path

            folder_faults: list[InputFault] = []
            excluded_path = None if without is None else os.path.realpath(without)
            folder_sources = list(_search(Path(path), records, excluded_path, folder_faults))
            sources += folder_sources
            faults += (
                folder_faults if folder_sources or folder_faults else [InputFault(path, "no captures in it")]
            )
        else:
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError, ValueError):
                raise UsageError(f"no such file: {path}") from None
            except OSError as error:
                faults.append(InputFault(path, _cause(error)))
            else:
                if not path.endswith(STATEMENT_SUFFIX):  # a shell's pattern names it with its capture
                    sources.append(_source(path, records))
    return sources, faults


def _cause(error: OSError) -> str:
    return error.strerror or type(error).__name__


def find_captures(paths: Iterable[str]) -> list[Path]:
    """The files of captures that *paths* name, folders included.

    Raises:
        UsageError: a path does not exist, or a folder has no capture.
    """
    sources, faults = find_sources(paths, records=False)
    if faults:
        raise UsageError(f"{faults[0].place}: {faults[0].cause}")
    return [
        source.path for source in sources if source.path is not None and source.path.suffix != _RECORDS_SUFFIX
    ]


def _search(
    root: Path, records: bool | None, excluded_path: str | None, folder_faults: list[InputFault]
) -> Iterator[InputSource]:
    """The sources in *root* and in every folder below it that is not hidden, in order, except those in *excluded_path*.

    A fault for each folder that cannot be read is added to *folder_faults*.
    """
    folders = [root]
    while folders:
        folder = folders.pop()
        if excluded_path is not None and os.path.realpath(folder) == excluded_path:
            continue
        try:
            files, entries = _files(folder), sorted(folder.iterdir(), reverse=True)
        except OSError as error:
            folder_faults.append(InputFault(str(error.filename or folder), _cause(error)))
            continue
        yield from (_source(str(file), records, root) for file in files)
        folders += (
            one
            for one in entries
            if not one.name.startswith((".", "__")) and os.path.isdir(one) and not os.path.islink(one)
        )


def _files(folder: Path) -> list[Path]:
    from crosswalk.testing.captures import capture_files, is_file

    captures = list(capture_files(folder))
    names = {file.name for file in captures}
    other_files = (file for file in folder.iterdir() if file.name not in names and _may_be_log(file.name))
    return sorted([*captures, *(file for file in other_files if is_file(file) and _is_log(str(file)))])


def _may_be_log(name: str) -> bool:
    return (
        name != MANIFEST
        and not name.startswith((".", "__"))
        and not {"request", "meta", "says"} & {*name.split(".")}
    )


def _source(file: str, records: bool | None, root: Path | None = None) -> InputSource:
    return InputSource(file, _is_log(file) if records is None else records, root)


def _is_log(file: str) -> bool:
    """Whether *file* is a log by its content, or by its name if the content does not tell."""
    suffixes = os.path.basename(file).lower().split(".")[1:]
    if suffixes[-1:] == [_RECORDS_SUFFIX[1:]]:
        return True
    if "response" in suffixes:
        return False
    from crosswalk.records import HEAD, file_kind

    try:
        with open(file, "rb") as stream:
            return file_kind(stream.read(HEAD), [f".{suffix}" for suffix in suffixes]) is not None
    except OSError:
        return False  # reading it reports the error


class InputItem:
    """The input of one answer, small enough to be sent to another process.

    Attributes:
        source: its source.
        line: the line of a log, or ``None`` for a file of its own, or standard input.
        fault: the reason why the rest of the source cannot be read, or ``None`` if it can.
    """

    __slots__ = ("fault", "line", "source")

    def __init__(self, source: InputSource, line: Line | None = None, *, fault: str | None = None) -> None:
        self.source = source
        self.line = line
        self.fault = fault

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return (self.source.size or 0) if self.line is None else self.line.size

    def answer(
        self, layout: Layout | None, keep: Mapping[str, tuple[str, ...]] | None = None
    ) -> RecordedAnswer | InputFault:
        """The answer, or why there is none. *layout* is that of a log's lines; ``None`` detects it.

        The record has the values at the paths *keep*.
        """
        name = self.source.name
        try:
            if self.fault is not None:
                return InputFault(name, self.fault)
            if self.line is not None:
                return _answer_of(self.line, name, layout, keep or {})
            if self.source.file is None:
                return RecordedAnswer(name, _stdin_chunks())
            body, manifest_facts = read_recorded(self.source.file)
        except OSError as error:
            return InputFault(name, _cause(error))
        except ConfigurationError as error:
            return InputFault(name, str(error))
        return RecordedAnswer(
            name, [body], manifest_facts["status"], size=len(body), server=manifest_facts["server"]
        )


def items(source: InputSource) -> Iterator[InputItem]:
    """The inputs of *source*, one at a time, so that memory stays flat."""
    if not source.records:
        yield InputItem(source)
        return
    from crosswalk.records import LogFileError, record_lines

    try:
        if source.file is None:
            yield from (InputItem(source, line) for line in record_lines(sys.stdin.buffer))
        else:
            with open(source.file, "rb") as file:
                yield from (InputItem(source, line) for line in record_lines(file, source.file))
    except OSError as error:
        yield InputItem(source, fault=_cause(error))
    except LogFileError as error:
        yield InputItem(source, fault=str(error))


def _answer_of(
    line: Line, name: str, layout: Layout | None, keep: Mapping[str, tuple[str, ...]]
) -> RecordedAnswer | InputFault:
    from crosswalk.records import BadRecord

    record, place = line.read(layout, keep), f"{name}:{line.number}"
    if isinstance(record, BadRecord):
        return InputFault(
            place, record.cause, record.size, record.line, record.exchange, is_exchange=record.is_exchange
        )
    return RecordedAnswer(
        place,
        [record.body],
        record.status,
        provider=record.provider,
        server=record.server,
        id=record.id,
        size=record.size,
        record=record,
    )


def read_capture(path: str) -> Capture:
    """The capture at *path*, or on standard input.

    Raises:
        UsageError: it cannot be read.
    """
    from crosswalk.testing.captures import Capture, load_capture

    if path == _STDIN:
        from pathlib import Path

        return Capture("standard input", Path(_STDIN), b"".join(_stdin_chunks()))
    try:
        return load_capture(path)
    except OSError as error:
        raise UsageError(f"{path}: {_cause(error)}") from None


def _stdin_chunks() -> Iterator[bytes]:
    if sys.stdin.isatty():
        say("reading an answer from the terminal; end it with Ctrl-D")
    # Pass on each chunk at once: the input may be a live stream.
    while chunk := sys.stdin.buffer.read1(_CHUNK_BYTES):  # type: ignore[union-attr]  # a buffered reader has it
        yield chunk

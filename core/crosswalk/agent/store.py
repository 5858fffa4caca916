"""Where sessions are kept: a folder, or an SQLite database; safe for several threads and processes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import orjson

from crosswalk.agent.session import ChatSession
from crosswalk.agent.session_json import write_file
from crosswalk.errors import ConfigurationError, CrosswalkError, ResponseValidationError
from crosswalk.types.json import load_json

__all__ = ["DirectoryStore", "SQLiteStore", "SessionConflictError", "SessionStore"]


_MAX_NAME_LENGTH = 200
"""So many characters of an id, as it is written there, the name of a file has at most."""


class SessionStore(Protocol):
    """Keeps sessions by their ids; write one for a database of your own."""

    def load(self, id: str) -> ChatSession:
        """The session of that name; an empty one where none is kept."""

    def save(self, session: ChatSession) -> None:
        """Keep *session* as it is now.

        Raises:
            SessionConflictError: somebody else has saved it since it was loaded.
        """

    def delete(self, id: str) -> None:
        """Forget the session of that name, if there is one."""

    def ids(self) -> list[str]:
        """The names of all sessions, sorted."""


class _Store(ABC):
    """What is the same for every kind of storage: nobody overwrites what he has not seen."""

    def __init__(self) -> None:
        self._digests: WeakKeyDictionary[ChatSession, bytes] = WeakKeyDictionary()

    def load(self, id: str) -> ChatSession:
        """The session of that name; an empty one where none is kept.

        Raises:
            CanonicalJSONError: what is kept is no session that can be read.
            ResponseValidationError: *id* is no text, or an empty one.
            OSError, sqlite3.Error: the storage cannot be read.
        """
        with self._open_storage() as storage:
            data = storage.read(_key(id))
        session = ChatSession(id=id) if data is None else ChatSession.from_json(data)
        session.id = id  # whatever a copy of another one says: it is saved where it was found
        self._digests[session] = _digest(data)
        return session

    def save(self, session: ChatSession) -> None:
        """Keep *session* as it is now, whole or not at all.

        Raises:
            SessionConflictError: somebody else has saved or deleted it since it was loaded here, or saved one of that name.
            CanonicalJSONError: a turn holds what JSON cannot say. ResponseValidationError: it is no session.
            OSError, sqlite3.Error: the storage cannot be written.
        """
        if not isinstance(session, ChatSession):
            raise ResponseValidationError(f"a store keeps sessions, not {type(session).__name__}")
        data, key = session.to_json(indent=True) + b"\n", _key(session.id)
        with self._open_storage() as storage:
            if _digest(storage.read(key)) != self._digests.get(session, _digest(None)):
                raise SessionConflictError(session.id)
            storage.write(key, data)
        self._digests[session] = _digest(data)

    def delete(self, id: str) -> None:
        """Forget the session of that name, if there is one.

        Raises:
            OSError, sqlite3.Error: the storage cannot be written.
        """
        with self._open_storage() as storage:
            storage.write(_key(id), None)

    def ids(self) -> list[str]:
        """The names of all sessions, sorted.

        Raises:
            OSError, sqlite3.Error: the storage cannot be read.
        """
        with self._open_storage() as storage:
            return sorted(storage.names())

    @abstractmethod
    def _open_storage(self) -> AbstractContextManager[_Storage]:
        """The storage, for this caller alone."""


class _Storage(Protocol):
    def read(self, key: bytes) -> bytes | None:
        """What is kept there; ``None`` for nothing."""

    def write(self, key: bytes, data: bytes | None) -> None:
        """Keep it there; ``None`` for nothing."""

    def names(self) -> list[str]:
        """Where something is kept, as texts."""


def _key(id: object) -> bytes:
    try:
        if isinstance(id, str) and id:
            return id.encode()
    except UnicodeEncodeError:
        pass
    raise ResponseValidationError("the id of a session must be a text that is not empty")


def _digest(data: bytes | None) -> bytes:
    return b"" if data is None else hashlib.sha256(data).digest()


class DirectoryStore(_Store):
    """Sessions as files of a folder, each as ``ChatSession.save`` writes it; what others write there is left alone.

    A file is named after its session's id, a long one cut, with a hash of all of it.

    Args:
        folder: made where it is not there, for its owner alone.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__()
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextmanager
    def _open_storage(self) -> Iterator[_Folder]:
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock_file(handle)
            yield _Folder(self._folder)
        finally:
            os.close(handle)  # which lets the next one in


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, key: bytes) -> bytes | None:
        """The text of its file."""
        try:
            return self._file(key).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, key: bytes, data: bytes | None) -> None:
        """Write its file, or remove it."""
        if data is None:
            self._file(key).unlink(missing_ok=True)
        else:
            write_file(self._file(key), data)

    def names(self) -> list[str]:
        """Those whose files are there."""
        names = []
        for file in self._folder.glob("*.json"):
            with suppress(UnicodeError, orjson.JSONDecodeError):
                name = _stored_id(file) if "~" in file.stem else unquote(file.stem, errors="strict")
                if isinstance(name, str) and self._file(name.encode()) == file:
                    names.append(name)
        return names

    def _file(self, key: bytes) -> Path:
        # No name that means something to a file system, and none that differs from another by its capitals alone.
        plain = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
        name = "".join(chr(byte) if byte in plain else f"%{byte:02x}" for byte in key)
        if len(name) > _MAX_NAME_LENGTH:  # file systems take 255 bytes
            name = f"{name[: _MAX_NAME_LENGTH - 65]}~{hashlib.sha256(key).hexdigest()}"
        return self._folder / f"{name}.json"


def _stored_id(file: Path) -> object:
    """What a file, whose name does not tell it all, says to be the id of its session."""
    said = load_json(file.read_bytes())
    return said.get("id") if isinstance(said, dict) else None


def _lock_file(handle: int) -> None:
    """Lock a file, which an end of the program unlocks."""
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)


class SQLiteStore(_Store):
    """Sessions in a table ``sessions`` of an SQLite database, each as ``ChatSession.to_json`` writes it.

    Args:
        file: the database; made where it is not there, for its owner alone.

    Raises:
        OSError, sqlite3.Error: it cannot be made. ConfigurationError: it is to be in memory.
    """

    def __init__(self, file: Path | str) -> None:
        super().__init__()
        if file == ":memory:":
            raise ConfigurationError(
                "a database in memory keeps nothing: each use has another one", key="file"
            )
        self._file = Path(file)
        is_new = not self._file.exists()
        with self._open_storage() as storage:
            storage.begin()
        if is_new:  # only now: who opens and closes the file itself takes SQLite's locks away
            self._file.chmod(0o600)

    @contextmanager
    def _open_storage(self) -> Iterator[_Table]:
        # A connection for each use: one belongs to its thread, and to its process.
        with closing(sqlite3.connect(self._file, timeout=60, isolation_level=None)) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield _Table(connection)


class _Table:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute

    def begin(self) -> None:
        """Make it."""
        self._run("CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, data BLOB NOT NULL)")

    def read(self, key: bytes) -> bytes | None:
        """What its row holds."""
        # As bytes, whatever somebody else has written: SQLite has no types that hold.
        row = self._run("SELECT CAST(data AS BLOB) FROM sessions WHERE id = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def write(self, key: bytes, data: bytes | None) -> None:
        """Write its row, or remove it."""
        if data is None:
            self._run("DELETE FROM sessions WHERE id = ?", (key,))
        else:
            self._run("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (key, data))

    def names(self) -> list[str]:
        """Those of the rows that a store has written."""
        names = []
        for (key,) in self._run("SELECT id FROM sessions WHERE typeof(id) = 'blob'"):
            with suppress(UnicodeDecodeError):
                names.append(bytes(key).decode())
        return names


class SessionConflictError(CrosswalkError):
    """A session was saved by somebody else since it was loaded; nothing was written.

    Load it again, and do anew what was done.

    Attributes:
        id: the session's name.
    """

    def __init__(self, id: str) -> None:
        super().__init__("the session was saved by somebody else since it was loaded")
        self.id = id

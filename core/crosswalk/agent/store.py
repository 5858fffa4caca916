"""Storage of sessions in a folder or an SQLite database, safe for several threads and processes."""

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
    """Stores sessions by their ids. Implement it for a database of your own."""

    def load(self, id: str) -> ChatSession:
        """Return the session with this id, or an empty one if it is not stored."""

    def save(self, session: ChatSession) -> None:
        """Store *session* in its current state.

        Raises:
            SessionConflictError: another writer saved it after it was loaded.
        """

    def delete(self, id: str) -> None:
        """Delete the session with this id, if it is stored."""

    def ids(self) -> list[str]:
        """Return the ids of all sessions, sorted."""


class _Store(ABC):
    """The common part of stores: no writer overwrites a version that it has not loaded."""

    def __init__(self) -> None:
        self._digests: WeakKeyDictionary[ChatSession, bytes] = WeakKeyDictionary()

    def load(self, id: str) -> ChatSession:
        """Return the session with this id, or an empty one if it is not stored.

        Raises:
            CanonicalJSONError: the stored data is not a readable session.
            ResponseValidationError: *id* is not a string, or empty.
            OSError, sqlite3.Error: the storage cannot be read.
        """
        with self._open_storage() as storage:
            data = storage.read(_key(id))
        session = ChatSession(id=id) if data is None else ChatSession.from_json(data)
        session.id = id  # even if the data is a copy of another session: save it where it was loaded
        self._digests[session] = _digest(data)
        return session

    def save(self, session: ChatSession) -> None:
        """Store *session* in its current state, completely or not at all.

        Raises:
            SessionConflictError: another writer saved or deleted it after it was loaded here, or saved a new one with
                its id.
            CanonicalJSONError: a turn holds a value that JSON cannot represent.
            ResponseValidationError: *session* is not a session.
            OSError, sqlite3.Error: the storage cannot be written.
        """
        if not isinstance(session, ChatSession):
            raise ResponseValidationError(f"a store saves sessions, not {type(session).__name__}")
        data, key = session.to_json(indent=True) + b"\n", _key(session.id)
        with self._open_storage() as storage:
            if _digest(storage.read(key)) != self._digests.get(session, _digest(None)):
                raise SessionConflictError(session.id)
            storage.write(key, data)
        self._digests[session] = _digest(data)

    def delete(self, id: str) -> None:
        """Delete the session with this id, if it is stored.

        Raises:
            OSError, sqlite3.Error: the storage cannot be written.
        """
        with self._open_storage() as storage:
            storage.write(_key(id), None)

    def ids(self) -> list[str]:
        """Return the ids of all sessions, sorted.

        Raises:
            OSError, sqlite3.Error: the storage cannot be read.
        """
        with self._open_storage() as storage:
            return sorted(storage.names())

    @abstractmethod
    def _open_storage(self) -> AbstractContextManager[_Storage]:
        """Open the storage exclusively."""


class _Storage(Protocol):
    def read(self, key: bytes) -> bytes | None:
        """Return the data of *key*, or ``None``."""

    def write(self, key: bytes, data: bytes | None) -> None:
        """Store *data* under *key*, or delete it if *data* is ``None``."""

    def names(self) -> list[str]:
        """Return the ids of the stored sessions."""


def _key(id: object) -> bytes:
    try:
        if isinstance(id, str) and id:
            return id.encode()
    except UnicodeEncodeError:
        pass
    raise ResponseValidationError("the id of a session must be a non-empty string")


def _digest(data: bytes | None) -> bytes:
    return b"" if data is None else hashlib.sha256(data).digest()


class DirectoryStore(_Store):
    """Stores sessions as files in a folder, in the format of ``ChatSession.save``. Other files there are ignored.

    The file name is the session's id, escaped. A long id is cut, and a hash of all of it is added.

    Args:
        folder: created with permissions for its owner alone if it does not exist.

    Raises:
        OSError: the folder cannot be created.
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
            os.close(handle)  # releases the lock


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, key: bytes) -> bytes | None:
        """Return the contents of the file."""
        try:
            return self._file(key).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, key: bytes, data: bytes | None) -> None:
        """Write the file, or delete it."""
        if data is None:
            self._file(key).unlink(missing_ok=True)
        else:
            write_file(self._file(key), data)

    def names(self) -> list[str]:
        """Return the ids of the existing files."""
        names = []
        for file in self._folder.glob("*.json"):
            with suppress(UnicodeError, orjson.JSONDecodeError):
                name = _stored_id(file) if "~" in file.stem else unquote(file.stem, errors="strict")
                if isinstance(name, str) and self._file(name.encode()) == file:
                    names.append(name)
        return names

    def _file(self, key: bytes) -> Path:
        # Escape everything that a file system may treat specially, and capitals, which some file systems ignore.
        plain = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
        name = "".join(chr(byte) if byte in plain else f"%{byte:02x}" for byte in key)
        if len(name) > _MAX_NAME_LENGTH:  # file systems take 255 bytes
            name = f"{name[: _MAX_NAME_LENGTH - 65]}~{hashlib.sha256(key).hexdigest()}"
        return self._folder / f"{name}.json"


def _stored_id(file: Path) -> object:
    """Return the id inside *file*, for files with a cut name."""
    payload = load_json(file.read_bytes())
    return payload.get("id") if isinstance(payload, dict) else None


def _lock_file(handle: int) -> None:
    """Lock a file. The lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)


class SQLiteStore(_Store):
    """Stores sessions in the table ``sessions`` of an SQLite database, in the format of ``ChatSession.to_json``.

    Args:
        file: the database, created with permissions for its owner alone if it does not exist.

    Raises:
        OSError, sqlite3.Error: the database cannot be created.
        ConfigurationError: *file* is ``":memory:"``.
    """

    def __init__(self, file: Path | str) -> None:
        super().__init__()
        if file == ":memory:":
            raise ConfigurationError(
                "a database in memory stores nothing: each connection has its own", key="file"
            )
        self._file = Path(file)
        is_new = not self._file.exists()
        with self._open_storage() as storage:
            storage.begin()
        if is_new:  # not before: opening and closing the file would release SQLite's locks
            self._file.chmod(0o600)

    @contextmanager
    def _open_storage(self) -> Iterator[_Table]:
        # A new connection each time, because a connection belongs to one thread and one process.
        with closing(sqlite3.connect(self._file, timeout=60, isolation_level=None)) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield _Table(connection)


class _Table:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute

    def begin(self) -> None:
        """Create the table if it does not exist."""
        self._run("CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, data BLOB NOT NULL)")

    def read(self, key: bytes) -> bytes | None:
        """Return the data of the row."""
        # Cast to bytes, because SQLite does not enforce column types.
        row = self._run("SELECT CAST(data AS BLOB) FROM sessions WHERE id = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def write(self, key: bytes, data: bytes | None) -> None:
        """Write the row, or delete it."""
        if data is None:
            self._run("DELETE FROM sessions WHERE id = ?", (key,))
        else:
            self._run("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (key, data))

    def names(self) -> list[str]:
        """Return the ids of rows that a store has written."""
        names = []
        for (key,) in self._run("SELECT id FROM sessions WHERE typeof(id) = 'blob'"):
            with suppress(UnicodeDecodeError):
                names.append(bytes(key).decode())
        return names


class SessionConflictError(CrosswalkError):
    """Another writer saved the session after it was loaded. Nothing was written.

    Load the session again, and repeat your changes.

    Attributes:
        id: the id of the session.
    """

    def __init__(self, id: str) -> None:
        super().__init__("the session was changed by another writer since it was loaded")
        self.id = id

"""Storage of sessions in a folder or an SQLite database, safe for several threads and processes."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import attrs
import orjson

from crosswalk.agent.session import ChatSession, write_file, write_session, write_turn
from crosswalk.errors import ConfigurationError, CrosswalkError, ResponseValidationError
from crosswalk.request import Turn
from crosswalk.types.json import load_json
from crosswalk.types.values import checks_keywords

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
        self._states: WeakKeyDictionary[ChatSession, _Stored] = WeakKeyDictionary()

    def load(self, id: str) -> ChatSession:
        """Return the session with this id, or an empty one if it is not stored.

        Raises:
            CanonicalJSONError: the stored data is not a readable session.
            ResponseValidationError: *id* is not a string, or empty.
            OSError, sqlite3.Error: the storage cannot be read.
        """
        key = _key(id)
        with self._open_storage() as storage:
            version, session = storage.version(key), storage.read(key)
        session = session or ChatSession(id=id)
        session.id = id  # even if the data is a copy of another session: save it where it was loaded
        self._states[session] = _Stored(version, session.turns)
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
        key = _key(session.id)
        loaded_state = self._states.get(session, _EMPTY_STATE)
        with self._open_storage() as storage:
            if storage.version(key) != loaded_state.version:
                raise SessionConflictError(session.id)
            new_state = storage.write(key, session, loaded_state.turns)
        self._states[session] = new_state

    def delete(self, id: str) -> None:
        """Delete the session with this id, if it is stored.

        Raises:
            OSError, sqlite3.Error: the storage cannot be written.
        """
        with self._open_storage() as storage:
            storage.delete(_key(id))

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


@attrs.frozen
class _Stored:
    """The state in which a session was last loaded or saved.

    Attributes:
        version: tells it from every other state, or empty if nothing was stored.
        turns: its turns.
    """

    version: bytes
    turns: tuple[Turn, ...]


_EMPTY_STATE: Final = _Stored(b"", ())


class _Storage(Protocol):
    def version(self, key: bytes) -> bytes:
        """Return the version of the session under *key*, or ``b""`` if it is not stored."""

    def read(self, key: bytes) -> ChatSession | None:
        """Return the session under *key*, or ``None``."""

    def write(self, key: bytes, session: ChatSession, stored_turns: Sequence[Turn]) -> _Stored:
        """Store *session* under *key*, where *stored_turns* are the stored turns."""

    def delete(self, key: bytes) -> None:
        """Delete the session under *key*, if there is one."""

    def names(self) -> list[str]:
        """Return the ids of the stored sessions."""


def _key(id: object) -> bytes:
    try:
        if isinstance(id, str) and id:
            return id.encode()
    except UnicodeEncodeError:
        pass
    raise ResponseValidationError("the id of a session must be a non-empty string")


class DirectoryStore(_Store):
    """Stores sessions as files in a folder, in the format of ``ChatSession.save``. Other files there are ignored.

    The file name is the session's id, escaped. A long id is cut, and a hash of all of it is added.

    Args:
        folder: created with permissions for its owner alone if it does not exist.

    Raises:
        OSError: the folder cannot be created.
    """

    @checks_keywords()
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

    def version(self, key: bytes) -> bytes:
        """Return the hash of the file."""
        data = self._data(key)
        return b"" if data is None else hashlib.sha256(data).digest()

    def read(self, key: bytes) -> ChatSession | None:
        """Return the session in the file."""
        data = self._data(key)
        return None if data is None else ChatSession.from_json(data)

    def write(self, key: bytes, session: ChatSession, stored_turns: Sequence[Turn]) -> _Stored:
        """Write the whole file."""
        turns = session.turns
        data = write_session(session, turns, indent=True) + b"\n"
        write_file(self._file(key), data)
        return _Stored(hashlib.sha256(data).digest(), turns)

    def delete(self, key: bytes) -> None:
        """Delete the file."""
        self._file(key).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the ids of the existing files."""
        names = []
        for file in self._folder.glob("*.json"):
            with suppress(UnicodeError, orjson.JSONDecodeError):
                name = _stored_id(file) if "~" in file.stem else unquote(file.stem, errors="strict")
                if isinstance(name, str) and self._file(name.encode()) == file:
                    names.append(name)
        return names

    def _data(self, key: bytes) -> bytes | None:
        try:
            return self._file(key).read_bytes()
        except FileNotFoundError:
            return None

    def _file(self, key: bytes) -> Path:
        # Escape everything that a file system may treat specially, and capitals, which some file systems ignore.
        safe_characters = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
        name = "".join(chr(byte) if byte in safe_characters else f"%{byte:02x}" for byte in key)
        if len(name) > _MAX_NAME_LENGTH:  # file systems take 255 bytes
            name = f"{name[: _MAX_NAME_LENGTH - 65]}~{hashlib.sha256(key).hexdigest()}"
        return self._folder / f"{name}.json"


def _stored_id(file: Path) -> object:
    """Return the id inside *file*, for files with a cut name."""
    document = load_json(file.read_bytes())
    return document.get("id") if isinstance(document, dict) else None


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
    """Stores sessions in an SQLite database: one row for each turn, of which only new ones are written.

    Args:
        file: the database, created with permissions for its owner alone if it does not exist.

    Raises:
        OSError, sqlite3.Error: the database cannot be created.
        ConfigurationError: *file* is ``":memory:"``.
    """

    @checks_keywords()
    def __init__(self, file: Path | str) -> None:
        super().__init__()
        if file == ":memory:":
            raise ConfigurationError(
                "a database in memory stores nothing: each connection has its own", key="file"
            )
        self._file = Path(file)
        is_new = not self._file.exists()
        with self._open_storage() as storage:
            storage.create()
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

    def create(self) -> None:
        """Create the tables if they do not exist."""
        self._run(
            "CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, version BLOB NOT NULL, data BLOB NOT NULL)"
        )
        self._run(
            "CREATE TABLE IF NOT EXISTS turns (session BLOB NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, "
            "PRIMARY KEY (session, number)) WITHOUT ROWID"
        )

    def version(self, key: bytes) -> bytes:
        """Return the random bytes that the last writer has put there."""
        # Cast to bytes, here and below, because SQLite does not enforce column types.
        row = self._run("SELECT CAST(version AS BLOB) FROM sessions WHERE id = ?", (key,)).fetchone()
        return b"" if row is None else bytes(row[0])

    def read(self, key: bytes) -> ChatSession | None:
        """Return the session of the rows."""
        row = self._run("SELECT CAST(data AS BLOB) FROM sessions WHERE id = ?", (key,)).fetchone()
        turns_query = "SELECT CAST(data AS BLOB) FROM turns WHERE session = ? ORDER BY number"
        return (
            None
            if row is None
            else ChatSession._from_parts(row[0], (turn for (turn,) in self._run(turns_query, (key,))))
        )

    def write(self, key: bytes, session: ChatSession, stored_turns: Sequence[Turn]) -> _Stored:
        """Write the rows from the first turn that is another one than *stored_turns*: turns never change."""
        turns, version = session.turns, os.urandom(16)
        pairs = enumerate(zip(turns, stored_turns, strict=False))
        first_changed_index = next(
            (n for n, (one, old) in pairs if one is not old), min(len(turns), len(stored_turns))
        )
        self._run(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", (key, version, write_session(session, ()))
        )
        self._run("DELETE FROM turns WHERE session = ? AND number >= ?", (key, first_changed_index))
        for number in range(first_changed_index, len(turns)):
            self._run("INSERT INTO turns VALUES (?, ?, ?)", (key, number, write_turn(turns[number])))
        return _Stored(version, turns)

    def delete(self, key: bytes) -> None:
        """Delete the rows."""
        self._run("DELETE FROM sessions WHERE id = ?", (key,))
        self._run("DELETE FROM turns WHERE session = ?", (key,))

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

"""Stores of sessions: nothing is lost between threads and processes, and no writer overwrites what it has not seen."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crosswalk import CanonicalJSONError, ChatMessage, ConfigurationError, ResponseValidationError
from crosswalk.agent import ChatSession, DirectoryStore, SessionConflictError, SessionStore, SQLiteStore

MAKE = {
    "folder": lambda path: DirectoryStore(path / "a" / "sessions"),
    "sqlite": lambda path: SQLiteStore(path / "sessions.db"),
}


@pytest.fixture(params=MAKE)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Makes a store, each time for the same place."""
    return lambda: MAKE[request.param](tmp_path)


Make = Callable[[], SessionStore]


def said(session: ChatSession) -> list[str]:
    return [message.text for message in session.messages]


def saved(store: SessionStore, id: str, *texts: str) -> ChatSession:
    session = store.load(id)
    session.extend(map(ChatMessage.user, texts))
    store.save(session)
    return session


def test_what_is_saved_is_there(make: Make) -> None:
    store = make()
    assert (store.ids(), store.load("a").turns) == ([], ())
    first = saved(store, "a", "one")
    saved(store, "b", "other")
    first.add_message(ChatMessage.user("two"))
    store.save(first)
    store.save(first)
    again = make().load("a")
    assert (said(again), again.id, again.created) == (["one", "two"], "a", first.created)
    assert make().ids() == ["a", "b"]
    store.delete("a")
    store.delete("never")
    assert (store.ids(), said(make().load("a"))) == (["b"], [])


def test_a_session_that_was_never_loaded_can_be_kept(make: Make) -> None:
    session = ChatSession([ChatMessage.user("one")])
    make().save(session)
    assert said(make().load(session.id)) == ["one"]
    with pytest.raises(SessionConflictError):  # another store has not seen it
        make().save(session)


@pytest.mark.parametrize("how", ["saved", "deleted", "made"])
def test_what_others_did_is_not_overwritten(make: Make, how: str) -> None:
    one, other = make(), make()
    if how != "made":
        saved(one, "a", "one")
    mine = one.load("a")
    if how == "deleted":
        other.delete("a")
    else:
        saved(other, "a", "theirs")
    mine.add_message(ChatMessage.user("mine"))
    with pytest.raises(SessionConflictError) as caught:
        one.save(mine)
    assert caught.value.id == "a"
    assert "mine" not in said(make().load("a"))
    saved(one, "a", "then")
    assert said(make().load("a"))[-1] == "then"


@pytest.mark.parametrize("id", ["../x", "A", "a", "ä/ö", "..", ".lock", "%41", "x" * 60, "a b\n\0", "CON"])
def test_any_text_is_a_name(make: Make, id: str) -> None:
    store = make()
    saved(store, id, id)
    saved(store, id.swapcase() + "x", "another")
    assert said(make().load(id)) == [id]
    assert store.ids() == sorted([id, id.swapcase() + "x"])


LONG = [
    "a" * 300,
    "a" * 299,
    "a" * 299 + "b",
    "日本" * 40,
    "ü" * 99 + "v",
    "x" * 50_000,
    "a" * 200,
    "a" * 201,
]


def test_a_name_may_be_longer_than_that_of_a_file(make: Make) -> None:
    for id in LONG:
        saved(make(), id, id[-3:])
    assert make().ids() == sorted(LONG)
    assert [said(make().load(id)) for id in LONG] == [[id[-3:]] for id in LONG]
    for id in LONG:
        make().delete(id)
    assert make().ids() == []


@pytest.mark.parametrize("content", [b"", b"[]", b'{"id": 7}', b'{"id": "another"}', b"\xff"])
def test_a_file_with_a_long_name_that_is_not_ours(tmp_path: Path, content: bytes) -> None:
    store = DirectoryStore(tmp_path)
    saved(store, LONG[0], "hi")
    (tmp_path / f"{'a' * 135}~{'0' * 64}.json").write_bytes(content)
    assert store.ids() == [LONG[0]]


def test_what_is_no_session_is_not_kept(make: Make) -> None:
    with pytest.raises(ResponseValidationError, match="a store saves sessions, not str"):
        make().save("hello")  # type: ignore[arg-type]


@pytest.mark.parametrize("id", ["", None, 7, "\ud800"])
def test_what_is_no_name(make: Make, id: Any) -> None:
    with pytest.raises(ResponseValidationError, match="the id of a session"):
        make().load(id)


def test_others_cannot_read_it(make: Make, tmp_path: Path) -> None:
    saved(make(), "a", "one")
    make()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


def test_a_copy_of_a_session_has_the_name_that_it_was_given(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    saved(store, "a", "one")
    (tmp_path / "b.json").write_bytes((tmp_path / "a.json").read_bytes())
    saved(store, "b", "two")
    assert [said(store.load(id)) for id in "ab"] == [["one"], ["one", "two"]]


def test_rows_of_others(tmp_path: Path) -> None:
    """SQLite keeps what it is given: a text where bytes belong, as its shell writes it."""
    store = SQLiteStore(tmp_path / "sessions.db")
    saved(store, "a", "one")
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection, connection:
        for table in ("sessions", "turns"):
            connection.execute(f"UPDATE {table} SET data = CAST(data AS TEXT)")
        connection.execute("INSERT INTO sessions VALUES ('text', '', 7), (x'ff', '', x'7b7d'), (7, '', 'x')")
        connection.execute("INSERT INTO sessions VALUES (?, '1', 7)", (b"b",))
    assert said(store.load("a")) == ["one"]
    assert store.ids() == ["a", "b"]
    with pytest.raises(CanonicalJSONError):
        store.load("b")


def test_files_of_others_in_the_folder_are_none_of_ours(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for name in ("Mine.json", "%ff.json", "notes.txt", "%41x%.json"):
        (tmp_path / name).write_text("{}")
    saved(store, "a", "one")
    assert store.ids() == ["a"]
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(CanonicalJSONError):
        store.load("b")


def test_threads_of_one_store_lose_nothing(make: Make) -> None:
    store = make()

    def add(number: int) -> None:
        for turn in range(5):
            while True:
                try:
                    saved(store, "a", f"{number}.{turn}")
                    break
                except SessionConflictError:
                    pass

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said(store.load("a"))) == [f"{number}.{turn}" for number in range(4) for turn in range(5)]


PROCESS = """
import sys
from crosswalk import ChatMessage
from crosswalk.agent import DirectoryStore, SessionConflictError, SQLiteStore

kind, place, number = sys.argv[1:]
store = (DirectoryStore if kind == "folder" else SQLiteStore)(place)
for turn in range(10):
    while True:
        session = store.load("a")
        session.add_message(ChatMessage.user(f"{number}.{turn}"))
        try:
            store.save(session)
            break
        except SessionConflictError:
            pass
"""


def test_only_new_turns_are_written(tmp_path: Path) -> None:
    store, other = (SQLiteStore(tmp_path / "sessions.db") for _ in range(2))
    session = saved(store, "a", "zero", "one", "two", "three")
    other.save(ChatSession(session, id="b"))

    def spoil() -> None:
        """Set every row of "a" to "zero", so that rows written afterwards differ."""
        with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection, connection:
            zero = "SELECT data FROM turns WHERE session = ? AND number = 0"
            connection.execute(f"UPDATE turns SET data = ({zero}) WHERE session = ?", (b"b", b"a"))

    spoil()
    session.add_message(ChatMessage.user("four"))
    store.save(session)
    assert said(store.load("a")) == [*["zero"] * 4, "four"]
    spoil()
    session.replace(3, ChatMessage.user("drei"))
    store.save(session)
    assert said(store.load("a")) == [*["zero"] * 3, "drei", "four"]
    spoil()
    session.pop()
    store.save(session)
    assert said(store.load("a")) == ["zero"] * 4
    saved(other, "a", "then")
    assert said(store.load("a")) == [*["zero"] * 4, "then"]
    other.delete("a")
    assert said(saved(other, "a", "new")) == said(store.load("a")) == ["new"]
    assert said(store.load("b")) == ["zero", "one", "two", "three"]


KILLED = """
import sys
from crosswalk import ChatMessage
from crosswalk.agent import DirectoryStore, SQLiteStore

kind, place = sys.argv[1:]
store = (DirectoryStore if kind == "folder" else SQLiteStore)(place)
session = store.load("a")
while True:
    session.add_message(ChatMessage.user(str(len(session))))
    store.save(session)
    print(len(session), flush=True)
"""


@pytest.mark.sweep
@pytest.mark.parametrize("kind", MAKE)
def test_a_killed_process_loses_nothing_that_it_saved(tmp_path: Path, kind: str) -> None:
    place = tmp_path / ("a/sessions" if kind == "folder" else "sessions.db")
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, kind, str(place)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(7):
                number = int(process.stdout.readline())
            process.kill()
            number = max([number, *map(int, process.stdout.read().split())])
        texts = said(MAKE[kind](tmp_path).load("a"))
        assert texts == [str(number) for number in range(len(texts))]
        assert number <= len(texts) <= number + 1


@pytest.mark.sweep
@pytest.mark.parametrize("kind", MAKE)
def test_processes_lose_nothing(tmp_path: Path, kind: str) -> None:
    place = tmp_path / ("a/sessions" if kind == "folder" else "sessions.db")
    commands = [[sys.executable, "-c", PROCESS, kind, str(place), str(number)] for number in range(3)]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in processes] == [0] * 3
    texts = said(MAKE[kind](tmp_path).load("a"))
    assert sorted(texts) == [f"{number}.{turn}" for number in range(3) for turn in range(10)]


def test_on_windows_the_folder_is_locked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[Any] = []
    windows = ModuleType("msvcrt")
    windows.LK_LOCK = 1  # type: ignore[attr-defined]
    windows.locking = lambda handle, mode, size: locked.append((os.fstat(handle).st_size, mode, size))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    saved(DirectoryStore(tmp_path), "a", "one")
    assert locked == [(0, 1, 1)] * 2


def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="stores nothing"):
        SQLiteStore(":memory:")

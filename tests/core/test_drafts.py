"""Files that are written as a whole: no reader ever gets half of one, and nothing else is touched."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from crosswalk import drafts
from crosswalk.drafts import written


@pytest.fixture(autouse=True)
def _first_time() -> None:
    drafts._remove_left_drafts.cache_clear()


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.json"
    with written(file, replace=True) as out:
        out.write(b"whole")
        assert not file.exists()
    assert {each.name: each.read_bytes() for each in file.parent.iterdir()} == {"a.json": b"whole"}


def test_what_stops_the_writer_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), written(file, replace=True) as out:
        out.write(b"half")
        raise KeyboardInterrupt
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.json": b"old"}


def test_one_that_is_there_is_replaced_only_if_that_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for text in (b"one", b"two"):
        with written(file, replace=True) as out:
            out.write(text)
    with pytest.raises(FileExistsError), written(file, replace=False) as out:
        out.write(b"three")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.json": b"two"}


def test_a_link_that_was_planted_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one of the very name that the draft is to have."""
    names = iter(["planted", "free"])
    monkeypatch.setattr(drafts.secrets, "token_hex", lambda _: next(names))
    monkeypatch.setattr(drafts, "fcntl", None)  # nor is it taken for a draft that was left
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / ".crosswalk-planted.part").symlink_to(target)
    with pytest.raises(FileExistsError), written(tmp_path / "a.json", replace=True):
        pass
    assert target.read_bytes() == b"mine"


def test_what_a_killed_program_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    left, others = tmp_path / ".crosswalk-left.part", tmp_path / ".crosswalk-others.part"
    left.write_bytes(b"half")
    with others.open("wb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        with written(tmp_path / "a.json", replace=True):
            pass
        assert {each.name for each in tmp_path.iterdir()} == {"a.json", others.name}


def test_a_draft_that_is_taken_away_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, taken = fcntl.flock, []

    def late(opened: object, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            os.unlink(taken[0])
        lock(opened, how)  # type: ignore[arg-type]

    monkeypatch.setattr(drafts.fcntl, "flock", late)
    with written(tmp_path / "a.json", replace=True) as out:
        out.write(b"whole")
    assert taken
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.json": b"whole"}


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "fcntl", None)
    (tmp_path / ".crosswalk-left.part").write_bytes(b"half")
    with written(tmp_path / "a.json", replace=True):
        pass
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    with drafts.made(tmp_path / "whole") as draft:
        (draft / "file").write_text("x")
        assert not (tmp_path / "whole").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["whole"]
    assert (tmp_path / "whole/file").read_text() == "x"
    with pytest.raises(OSError, match="not empty"), drafts.made(tmp_path / "whole") as draft:
        (draft / "other").write_text("y")
    assert [file.name for file in tmp_path.rglob("*")] == ["whole", "file"]


def test_a_folder_that_a_killed_program_left_is_removed(tmp_path: Path) -> None:
    left, alive = tmp_path / ".crosswalk-1.part", tmp_path / ".crosswalk-2.part"
    for draft in (left, alive):
        (draft / "whole").mkdir(parents=True)
        (draft / "lock").touch()
    with (alive / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with drafts.made(tmp_path / "new"):
            pass
    assert sorted(file.name for file in tmp_path.iterdir()) == [".crosswalk-2.part", "new"]


def test_a_folder_is_made_without_locks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".crosswalk-1.part").mkdir()
    (tmp_path / ".crosswalk-1.part/lock").touch()
    monkeypatch.setattr(drafts, "fcntl", None)
    with drafts.made(tmp_path / "new"):
        pass
    assert sorted(file.name for file in tmp_path.iterdir()) == [".crosswalk-1.part", "new"]

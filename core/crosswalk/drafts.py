"""Files that are written completely or not at all, even if the program is killed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

fcntl = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none


_PREFIX, _SUFFIX = ".crosswalk-", ".part"


@contextmanager
def written(file: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """*file*, opened for writing. It is replaced completely, or stays as it was if the program stops.

    Drafts that a killed program left in its folder are removed first.

    Args:
        file: the file. Its folder is created if it is missing.
        replace: whether an existing file is replaced.

    Raises:
        OSError: it cannot be written, or it exists and must not be replaced.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_drafts(file.parent)
    draft, draft_file = _draft_in(file.parent)
    try:
        with draft_file as out:
            yield out
            out.flush()
            if replace:
                os.replace(draft, file)
            else:
                os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _draft_in(folder: Path) -> tuple[Path, BinaryIO]:
    """A new, locked file whose name cannot be predicted, so that no link can wait there."""
    while True:
        # A short name, for any length of the file's; and the permissions of any other new file.
        draft = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        draft_file = draft.open("xb")
        if fcntl is None:
            return draft, draft_file
        fcntl.flock(draft_file, fcntl.LOCK_EX)
        if os.fstat(draft_file.fileno()).st_nlink:
            return draft, draft_file
        draft_file.close()  # another program took it for one that was left


@cache
def _remove_left_drafts(folder: Path) -> None:
    """Remove abandoned drafts in *folder*, once for each folder, since a log may have a million files."""
    if fcntl is None:
        return
    for draft in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError), draft.open("rb") as draft_file:  # still being written, or gone
            fcntl.flock(draft_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()


@contextmanager
def made(folder: Path) -> Iterator[Path]:
    """A folder that becomes *folder*, completely or not at all, when the block ends without an error.

    Folders that a killed program left beside it are removed first.

    Raises:
        OSError: it cannot be written, or *folder* exists and is not empty.
    """
    parent = folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    for lock_path in parent.glob(f"{_PREFIX}*{_SUFFIX}/lock"):
        with suppress(OSError), lock_path.open("rb") as lock:  # still being written, or gone
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                rmtree(lock_path.parent)
    draft = parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    draft.mkdir()
    try:
        with (draft / "lock").open("xb") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            (draft / "whole").mkdir()
            yield draft / "whole"
            (draft / "whole").rename(folder)
    finally:
        rmtree(draft)

"""One rule for all commands: 0 all went well, 1 something was tried and failed, 2 nothing was tried."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from .conftest import ROOT, Done

Run = Callable[..., Done]
GOOD = str(ROOT / "tests/captures/ollama/go_chat_stop.response.json")
BAD = str(ROOT / "tests/captures/vllm/client_disconnect_stream.response.sse")
STORED = str(ROOT / "snapshots/ollama")

COMMANDS = {
    "normalize": ["normalize", "{}"],
    "normalize --output": ["normalize", "--output", "out", "{}"],
    "convert": ["convert", "--to", "anthropic", "{}"],
    "diff": ["diff", "--stored", STORED, "{}"],
    "check": ["check", "--provider", "ollama", "--sample", "1", "{}"],
    "explain": ["explain", "{}"],
    "table": ["table", "ollama", "{}"],
    "parse": ["parse", "{}"],
}


def given(command: str, *files: str) -> list[str]:
    *before, last = COMMANDS[command]
    assert last == "{}"
    return [*before, *files]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "parse"])
def test_0_is_that_all_went_well(run: Run, command: str) -> None:
    assert run(*given(command, GOOD)).status == 0


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "table"])
def test_1_is_that_something_was_tried_and_failed(run: Run, command: str, tmp_path: Path) -> None:
    """An answer that no provider recognizes. For diff, one that was recognized once."""
    file = tmp_path / "go_chat_stop.response.json"
    file.write_text('{"odd": 1}')
    assert run(*given(command, file.name)).status == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_2_is_that_nothing_was_tried(
    run: Run, command: str, tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    """A file that is missing or cannot be read, a folder without captures, an option that there is not."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "locked.json").write_text("{}")
    locked(tmp_path / "locked.json")
    wrong = ["nowhere.json", "locked.json"]
    if command not in ("explain", "parse"):
        wrong.append("empty")
    for file in wrong:
        done = run(*given(command, file))
        assert (done.status, done.out) == (2, ""), (file, done)
        assert len(done.err.splitlines()) <= 2
    assert run(*given(command, GOOD), "--no-such-option").status == 2


@pytest.mark.parametrize("command", ["normalize", "normalize --output", "convert"])
def test_what_could_be_tried_decides(run: Run, command: str, tmp_path: Path) -> None:
    """One of several that cannot be read is a failure like any other."""
    (tmp_path / "empty").mkdir()
    assert run(*given(command, GOOD, "empty")).status == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["providers"],
        ["convert", "--to", "anthropic", "--report", "/dev/full", GOOD],
    ],
    ids=lambda argv: str(argv[0]),
)
def test_a_full_disk_is_one_line(argv: list[str]) -> None:
    is_report = "--report" in argv
    with open(os.devnull if is_report else "/dev/full", "wb") as out:
        done = subprocess.run([sys.executable, "-m", "crosswalk", *argv], stdout=out, stderr=subprocess.PIPE)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.endswith("No space left on device")


@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix closes them")
@pytest.mark.parametrize(
    ("closed", "status", "out", "said"),
    [
        ("0<&-", 1, "", "standard input: DetectionError: it is empty"),
        ("1>&-", 1, "", "crosswalk normalize: standard output: Bad file descriptor"),
        ("2>&-", 1, "", ""),
    ],
)
def test_a_standard_stream_that_is_closed_is_one_line(closed: str, status: int, out: str, said: str) -> None:
    """And what belongs on standard error never gets into the output."""
    body = b"{}" if "2" in closed else Path(GOOD).read_bytes()
    command = f'exec "$0" -m crosswalk normalize {closed}'
    done = subprocess.run(["sh", "-c", command, sys.executable], input=body, capture_output=True)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode().strip()) == (status, out, said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_files_that_a_disk_has_no_room_for_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def full(*_: object, **__: object) -> Iterator[BinaryIO]:
        with open("/dev/full", "wb", buffering=0) as out:
            yield out

    monkeypatch.setattr("crosswalk.cli.stored.written", full)
    done = run("normalize", "--output", "out", GOOD)
    assert (done.status, done.out) == (1, "")
    assert done.err == "crosswalk normalize: out/go_chat_stop.json: No space left on device\n"

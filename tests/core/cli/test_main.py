from __future__ import annotations

import errno
import gc
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import orjson
import pytest

from crosswalk.cli import main

from .conftest import Done, line, unmeasured

COMMAND = [sys.executable, "-m", "crosswalk"]
Run = Callable[..., Done]


def test_the_commands_of_extras_are_described_like_the_others(run: Run) -> None:
    listed = run("--help").out
    assert re.search("batch +map large logs to columns", listed)
    assert re.search("serve +serve any model to clients", listed)


def test_the_version_is_the_distribution_s(run: Run) -> None:
    assert run("--version") == (0, f"crosswalk {version('crosswalk-llm')}\n", "")


@pytest.mark.parametrize(
    "argv",
    [
        ["dance"],
        ["normalize", "--dance"],
        ["providers", "surplus"],
        ["normalize", "--status", "99"],
        ["normalize", "--created", "yesterday"],
        ["normalize", "--created", "2026-01-01T00:00:00"],
        ["check", "--provider", "ollama", "--sample", "0", "x"],
        ["check", "--provider", "ollama", "--jobs", "many", "x"],
    ],
)
def test_a_wrong_command_line_is_status_2_and_says_where_to_read(run: Run, argv: list[str]) -> None:
    done = run(*argv)
    assert (done.status, done.out) == (2, "")
    command = "" if argv == ["dance"] else f" {argv[0]}"
    (line,) = done.err.splitlines()
    assert line.startswith(f"crosswalk{command}: ")
    assert line.endswith(f"; see crosswalk{command} --help")


@pytest.mark.parametrize(
    ("argv", "step"),
    [
        (["convert", "x"], "; for example: crosswalk convert answer.response.json --to openai-chat"),
        (["convert", "x", "--to", "messages"], ": use anthropic"),
        (["new-plugin"], "; for example: crosswalk new-plugin acme"),
        (["normalise"], ", did you mean 'normalize'?"),
        (["report", "x", "--format", "pdf"], ": it is an option of crosswalk normalize, table"),
        (["ask", "ollama:m"], "'ollama:m' names a server; put the prompt after it, in quotes"),
        (["chat", "nobody:m"], "'nobody' is no provider"),
        (["chat", "ollama:m", "--provider", "vllm"], "given twice, in front and with --provider"),
    ],
)
def test_a_wrong_command_line_is_one_line_with_the_next_step(run: Run, argv: list[str], step: str) -> None:
    done = run(*argv)
    assert (done.status, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.endswith(step)


def test_check_asks_for_the_provider(run: Run) -> None:
    done = run("check", "x")
    assert (done.status, done.out, done.err) == (2, "", "crosswalk check: which provider? pass --provider\n")


def test_alone_it_shows_the_help(run: Run) -> None:
    done = run()
    assert (done.status, done.out) == (2, "")
    assert done.err == run("--help").out


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["normalise"], "'normalize'"),
        (["normalize", "--provder", "x", "y"], "'--provider'"),
        (["normalize", "--provder=x", "y"], "'--provider'"),
        (["normalize", "--format", "jsonlines"], "'jsonl'"),
        (["normalize", "--provider", "ollma", "y"], "'ollama'"),
        (["--versio"], "'--version'"),
        (["table", "--htm"], "'--html'"),
        (["check", "--provder", "x", "y"], "'--provider'"),
        (["ask", "--modle", "x", "Hi"], "'--model'"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(run: Run, argv: list[str], meant: str) -> None:
    done = run(*argv)
    assert (done.status, done.out) == (2, "")
    assert f", did you mean {meant}?" in done.err


def test_what_stands_behind_two_dashes_is_no_option(run: Run) -> None:
    assert "no such file" in run("normalize", "--", "--provder").err


def test_what_was_typed_is_shown_without_harm(run: Run) -> None:
    done = run("normalize", "--\x1b[31m")
    assert (done.status, "\x1b" in done.err) == (2, False)


def test_output_that_takes_no_more_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(NoRoom()))
    monkeypatch.setattr("crosswalk.cli.terminal.close_quietly", lambda: None)
    assert main(["providers"]) == 1
    assert capsys.readouterr().err == "crosswalk providers: standard output: No space left on device\n"


class NoRoom(io.BytesIO):
    """A file on a full disk."""

    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_paths_may_stand_on_both_sides_of_an_option(run: Run, captures: Callable[..., Path]) -> None:
    files = [captures(case, line(case)) for case in ("a", "b")]
    done = run("normalize", files[0], "--provider", "ollama", files[1])
    assert done.status == 0
    assert len(done.out.splitlines()) == 2


def test_wrong_settings_are_status_2_and_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent/config.yml").write_text("model: {timeout: 3}")
    done = run("providers")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("crosswalk providers: .agent/config.yml: unknown key 'model.timeout'")


@pytest.mark.parametrize("said", ["providers", "--help"])
def test_a_closed_pipe_is_quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str) -> None:
    class Closed:
        encoding = "utf-8"

        def __init__(self) -> None:
            self.file = (tmp_path / "out").open("wb")
            self.buffer = self

        def write(self, _: bytes) -> int:
            raise BrokenPipeError

        def isatty(self) -> bool:
            return False

        def fileno(self) -> int:
            return self.file.fileno()

    closed = Closed()
    monkeypatch.setattr(sys, "stdout", closed)
    assert main([said]) == 141
    closed.file.write(b"into nothing")
    closed.file.close()
    assert (tmp_path / "out").read_bytes() == b""


def test_a_real_closed_pipe_leaves_no_trace(tmp_path: Path) -> None:
    records = tmp_path / "many.jsonl"
    records.write_bytes(orjson.dumps({"provider": "ollama", "body": line("x" * 1000)}) + b"\n")
    records.write_bytes(records.read_bytes() * 500)
    with subprocess.Popen(
        [*COMMAND, "normalize", str(records)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_a_real_ctrl_c_leaves_one_line() -> None:
    # A test run in the background may have told its children to ignore Ctrl-C.
    code = """import signal, sys
from crosswalk.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))"""
    with subprocess.Popen(
        [sys.executable, "-c", code, "normalize", "--provider", "ollama", "--stream"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=unmeasured(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(orjson.dumps(line("first", done=False)) + b"\n")
        process.stdin.flush()
        assert b"first" in process.stdout.readline()  # as it came, with the stream still open
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"interrupted\n")


def test_starting_loads_nothing_heavy() -> None:
    code = "import sys, crosswalk.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    heavy = {"rich", "pytest", "yaml", "orjson", "crosswalk.mapping", "crosswalk.testing", "crosswalk_ollama"}
    assert not heavy & loaded


def test_the_help_of_a_question_loads_nothing_that_asks() -> None:
    code = "import sys, crosswalk.cli; crosswalk.cli.main(['ask', '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--reasoning-effort" in done.stdout
    heavy = {
        "anyio",
        "cattrs",
        "httpx2",
        "crosswalk.plugin.registry",
        "crosswalk.prices",
        "crosswalk.service.service",
    }
    assert not heavy & set(done.stderr.split())


def test_no_command_needs_the_testing_extra(tmp_path: Path) -> None:
    """The kit's pytest class alone needs pytest. A user's environment has none."""
    body = tmp_path / "a.json"
    body.write_bytes(orjson.dumps(line()))
    commands = [
        ["normalize", str(body)],
        ["explain", str(body)],
        ["table", "ollama", str(body)],
        ["check", "--provider", "ollama", str(body)],
        ["normalize", str(body), "--output", str(tmp_path / "stored")],
        ["diff", str(body), "--stored", str(tmp_path / "stored")],
        ["new-plugin", "heron", "--directory", str(tmp_path / "heron")],
    ]
    code = (
        "import sys; sys.modules['pytest'] = sys.modules['syrupy'] = None\n"
        "from crosswalk.cli import main\n"
        f"for argv in {commands!r}:\n"
        "    if main(argv):\n"
        "        sys.exit(f'{argv}: failed')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_standard_stream_that_is_closed_is_there_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, as a daemon's."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["--version"]) == 0
    with sys.stdin as opened:
        assert opened.read() == ""


def test_a_program_that_calls_it_keeps_its_own_garbage_collection(capsys: pytest.CaptureFixture[str]) -> None:
    """A process that is the command's own ends behind it, and looks through nothing more."""
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    assert main(["--version"]) == 0
    assert main(["normalize", "no-such-file"]) == 2
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() <= frozen  # what another test has frozen may go meanwhile
    code = "import gc, sys; from crosswalk.cli import main; main(); sys.exit(not gc.get_freeze_count())"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout[:10]) == (0, "crosswalk ")


@pytest.mark.parametrize(("columns", "widest"), [("66", 64), ("120", 118), ("none", 78)])
def test_help_is_as_wide_as_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str, widest: int
) -> None:
    """If the width is unknown, 80 columns."""
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["normalize", "--help"]) == 0
    said, _, _examples = capsys.readouterr().out.partition(
        "\nExamples:"
    )  # those stand on one line, to be copied
    lines = said.splitlines()
    assert widest - 15 < max(map(len, lines)) <= widest

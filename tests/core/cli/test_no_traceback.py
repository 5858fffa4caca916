"""No command shows a traceback. Whatever is wrong around it is a few lines, with a status that tells of it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswalk.cli.parser import whole_parser
from crosswalk.errors import CrosswalkError, ServerError
from crosswalk.plugins import hookimpl
from crosswalk.testing.replay import Answer, ReplayServer

from .conftest import ROOT, Done

Run = Callable[..., Done]
GOOD = str(ROOT / "tests/captures/ollama/go_chat_stop.response.json")
DEAD = "http://127.0.0.1:1"
RECORD = ("--output", "captures", "--name", "case")
MOST_LINES = 9
"""The panel of an answer with three attempts, and the error."""

NO_SERVER = [
    ("ask", "--base-url", DEAD, "Hi"),
    ("ask", "--base-url", DEAD, "--model", "m", "--json", "Hi"),
    ("ask", "--base-url", DEAD, "--no-stream", "Hi"),
    ("ask", "--provider", "vllm", "--model", "m", "--base-url", DEAD, "Hi"),
    ("ask", "--provider", "vllm", "--base-url", DEAD, "Hi"),
    ("ask", "--provider", "vllm:m", "--base-url", DEAD, "--fallback", "ollama:m", "Hi"),
    ("models", "--base-url", DEAD),
    ("models", "vllm", "--base-url", DEAD),
    ("chat", "--base-url", DEAD),
    ("chat", "--base-url", DEAD, "--no-stream"),
    ("chat", "--provider", "vllm:m", "--base-url", DEAD),
    ("record", "--provider", "vllm:m", "--base-url", DEAD, *RECORD, "Hi"),
    ("record", "--base-url", DEAD, *RECORD, "Hi"),
]
"""Command lines that ask a server where none is."""

NO_ADDRESS = ["http://127.0.0.1:99999", "http://", "nonsense"]

NO_PROVIDER = [
    ("normalize", "--provider", "{plugin}", GOOD),
    ("normalize", "--provider", "{plugin}", "--stream", GOOD),
    ("normalize", "--provider", "{plugin}", "--output", "out", GOOD),
    ("check", "--provider", "{plugin}", GOOD),
    ("explain", "--provider", "{plugin}", GOOD),
    ("table", "{plugin}", GOOD),
    ("diff", "--provider", "{plugin}", "--stored", "stored", GOOD),
    ("convert", "--provider", "{plugin}", "--to", "anthropic", GOOD),
    ("report", "--provider", "{plugin}", GOOD),
    ("batch", "--provider", "{plugin}", "--output", "batched", "log.jsonl"),
    ("ask", "--provider", "{plugin}:m", "--base-url", DEAD, "Hi"),
    ("ask", "--provider", "{plugin}:m", "--base-url", DEAD, "--no-stream", "Hi"),
    ("models", "{plugin}", "--base-url", DEAD),
    ("chat", "--provider", "{plugin}:m", "--base-url", DEAD),
    ("record", "--provider", "{plugin}:m", "--base-url", DEAD, *RECORD, "Hi"),
    ("serve", "gateway.yaml", "--check"),
]
"""Command lines for a provider whose plugin is broken."""

NO_FILE = [
    ("normalize", "{file}"),
    ("normalize", "--stream", "{file}"),
    ("normalize", "--records", "{file}"),
    ("normalize", "--output", "{file}", GOOD),
    ("check", "--provider", "ollama", "{file}"),
    ("check", "--provider", "ollama", "--exceptions", "{file}", GOOD),
    ("check", "--corpus", "ollama", "--answers", "{file}"),
    ("explain", "{file}"),
    ("table", "ollama", "{file}"),
    ("parse", "{file}"),
    ("parse", "--schema", "{file}", GOOD),
    ("diff", "--stored", "{file}", GOOD),
    ("diff", "--stored", "stored", "--accept", "{file}", GOOD),
    ("convert", "--to", "anthropic", "{file}"),
    ("report", "{file}"),
    ("new-plugin", "kelp", "--captures", "{file}"),
    ("new-plugin", "kelp", "--directory", "{file}"),
    ("samples", "{file}"),
    ("chat", "--provider", "vllm:m", "--base-url", DEAD, "--session", "{file}"),
    ("record", "--provider", "vllm:m", "--base-url", DEAD, "--output", "{file}", "--name", "case", "Hi"),
    ("batch", "--output", "batched", "{file}"),
    ("batch", "--output", "{file}", GOOD),
    ("batch", "--output", "{file}", "--verify"),
    ("serve", "{file}", "--check"),
    ("serve", "{file}"),
    ("serve", "--import", "{file}"),
]
"""Command lines that read or write a file."""

FILES = {
    "missing": None,
    "folder": "",
    "empty": b"",
    "binary": b"\xff\xfe\x00\x81\n\x00",
    "cut": b'{"model": "m", "message": {"content": "H',
    "deep": b"[" * 10_000,
}

NOTHING_TO_BREAK = {"demo", "completion", "providers"}
"""Commands that read no file, ask no server and use no plugin that is named to them."""


class Incomplete:
    """A plugin without ``map_delta``."""


class Failing:
    """A plugin that fails in everything that it does."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Any:
        raise RuntimeError("first\nsecond")

    @hookimpl
    def build_request(self, request: Any) -> Any:
        raise LookupError("third\nfourth")


class Refusing:
    """A plugin that raises errors of Crosswalk where none is expected."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Any:
        raise ServerError("no such event")

    @hookimpl
    def build_request(self, request: Any) -> Any:
        raise CrosswalkError("no such request")


COUNTS_FAILURES = {"report", "record"}
"""Commands to which an answer that failed is an answer like others: the one counts it, the other keeps it."""


def assert_is_said(done: Done, command: str) -> None:
    assert done.status in ((0, 1, 2) if command in COUNTS_FAILURES else (1, 2)), done
    assert (done.out + done.err).strip(), done
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= MOST_LINES, done.err


def test_each_command_is_walked() -> None:
    walked = {argv[0] for argv in (*NO_SERVER, *NO_PROVIDER, *NO_FILE)}
    assert walked.isdisjoint(NOTHING_TO_BREAK)
    assert walked | NOTHING_TO_BREAK == {*whole_parser().commands}


@pytest.mark.usefixtures("at_once", "server")
@pytest.mark.parametrize("argv", NO_SERVER, ids=" ".join)
def test_a_server_that_does_not_run(run: Run, stdin: Callable[[bytes], None], argv: tuple[str, ...]) -> None:
    stdin(b"Hi\n")
    assert_is_said(run(*argv), argv[0])


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("command", ["ask", "chat"])
@pytest.mark.parametrize("more", [[], ["--no-stream"]])
def test_a_server_that_does_not_run_is_one_line(
    run: Run, stdin: Callable[[bytes], None], command: str, more: list[str]
) -> None:
    stdin(b"Hi\n/quit\n")
    done = run(command, "--base-url", DEAD, *more, *(["Hi"] if command == "ask" else []))
    assert (done.status, done.out) == (1, "")
    said = "ServerError: cannot connect to 127.0.0.1:1; start the server there, or name another address\n"
    assert done.err == {"ask": f"crosswalk ask: {said}", "chat": f"crosswalk: {said}0 turns\n"}[command]


@pytest.mark.untraced
@pytest.mark.usefixtures("at_once", "server")
@pytest.mark.parametrize("argv", NO_SERVER, ids=" ".join)
@pytest.mark.parametrize("address", NO_ADDRESS)
def test_an_address_that_is_none(
    run: Run, stdin: Callable[[bytes], None], argv: tuple[str, ...], address: str
) -> None:
    stdin(b"Hi\n")
    assert_is_said(run(*(address if word == DEAD else word for word in argv)), argv[0])


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("argv", NO_SERVER, ids=" ".join)
@pytest.mark.parametrize(
    "answer",
    [
        Answer((b"<html>",), headers={"content-type": "text/html"}, case="a page"),
        Answer((b"oops",), 500, case="an error"),
        Answer((b"",), 302, {"location": DEAD}, case="another place"),
        Answer((b'{"data": 5}',), case="no list"),
        Answer((b'{"data": [{"id": 5}]}',), case="a list without names"),
    ],
    ids=lambda answer: answer.case,
)
def test_a_server_of_something_else(
    run: Run, server: ReplayServer, stdin: Callable[[bytes], None], argv: tuple[str, ...], answer: Answer
) -> None:
    server.add(answer, times=None)
    stdin(b"Hi\n")
    assert_is_said(run(*(server.url if word == DEAD else word for word in argv)), argv[0])


@pytest.mark.usefixtures("at_once", "server")
@pytest.mark.parametrize("argv", NO_PROVIDER, ids=" ".join)
@pytest.mark.parametrize("plugin", [Incomplete, Failing, Refusing])
def test_a_plugin_that_is_broken(
    run: Run,
    stdin: Callable[[bytes], None],
    provider: Callable[[object, str], str],
    tmp_path: Path,
    argv: tuple[str, ...],
    plugin: type,
) -> None:
    name = provider(plugin(), plugin.__name__.lower())
    stored = tmp_path / "stored"
    stored.mkdir()
    (stored / "go_chat_stop.json").write_text("{}")
    (tmp_path / "log.jsonl").write_text('{"odd": 1}\n')
    (tmp_path / "gateway.yaml").write_text(f"models: {{tiny: {{provider: {name}, base_url: '{DEAD}'}}}}")
    stdin(b"Hi\n")
    options = ("--max-rejects", "0") if argv[0] == "batch" else ()
    if plugin is not Incomplete and argv[0] == "serve":
        assert run(*argv).status == 0  # the configuration names a plugin that can be loaded
        return
    assert_is_said(run(*(word.replace("{plugin}", name) for word in argv), *options), argv[0])


@pytest.mark.untraced
@pytest.mark.usefixtures("at_once", "server")
@pytest.mark.parametrize("argv", NO_FILE, ids=" ".join)
@pytest.mark.parametrize("content", FILES)
def test_a_file_that_cannot_be_read(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path, argv: tuple[str, ...], content: str
) -> None:
    file, written = tmp_path / "case.response.json", FILES[content]
    if written == "":
        file.mkdir()
    elif isinstance(written, bytes):
        file.write_bytes(written)
    stdin(b"Hi\n")
    done = run(*(word.replace("{file}", str(file)) for word in argv))
    assert done.status in (0, 1, 2, 3), done
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= MOST_LINES, done.err


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_that_is_taken(run: Run, tmp_path: Path, taken: int) -> None:
    (tmp_path / "gateway.yaml").write_text(f"models: {{tiny: {{provider: vllm, base_url: '{DEAD}'}}}}")
    assert_is_said(run("serve", "gateway.yaml", "--port", taken), "serve")

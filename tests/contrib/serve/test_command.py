"""``crosswalk serve``, and its pages."""

from __future__ import annotations

import errno
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import prometheus_client  # noqa: F401  # once imported, it looks no more at the environment that tests change
import pytest
import yaml

from contrib_serve import HI, says
from crosswalk.cli import main
from crosswalk.errors import ConfigurationError
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import ReplayServer
from crosswalk_serve.config import KeyHash, load_config, located, read_config
from crosswalk_serve.server import server_config
from crosswalk_serve.telemetry import forget, shared

ROOT = Path(__file__).parents[3]
CONFIG = "models:\n  tiny: {{provider: vllm, base_url: '{url}'}}\nlisten: 127.0.0.1:0\n{more}"


@pytest.fixture
def config(tmp_path: Path, upstream: ReplayServer) -> Path:
    (tmp_path / "g.yml").write_text(CONFIG.format(url=upstream.url, more=""))
    return tmp_path / "g.yml"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["serve", *words])
    return status, *capsys.readouterr()


def test_the_example_is_five_lines_that_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--example")
    assert (status, out.count("\n")) == (0, 5)
    read = read_config(out)
    assert read.models["llama3.2"].endpoints[0].provider == "ollama"
    assert (read.listen.host, read.listen.port) == ("127.0.0.1", 8080)


def test_a_file_is_checked(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, str(config), "--check") == (0, "", f"{config}: fine; models: tiny\n")
    config.write_text("models: {a: {provdr: x}}")
    status, _, err = said(capsys, str(config), "--check")
    assert (status, err) == (
        2,
        f"crosswalk serve: {config}, line 1: models.a.provdr: unknown key, did you mean 'provider'?\n",
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("models:\n  a: {provider: ollama}\n  a.b: {provider: olama}\n", ", line 3: models.a.b: unknown provider 'olama'"),
        ("models:\n  a: {provider: ollama}\n  b:\n    provider: ollama\n    defaults: {x: 1}\n", ", line 5: models.b: defaults: no option"),
        ("models: {a: {provider: ollama}}\nredis: {url: x}\n", ", line 2: expected an address of a Redis"),
    ],
)  # fmt: skip
def test_what_only_the_gateway_finds_out_has_a_line_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, error: str
) -> None:
    config = tmp_path / "g.yml"
    config.write_text(text)
    status, _, err = said(capsys, str(config), "--check")
    assert status == 2
    assert err.startswith(f"crosswalk serve: {config}{error}")


def test_an_error_without_a_key_or_with_its_file_stays(config: Path) -> None:
    for error in (ConfigurationError("no"), ConfigurationError("no", key="models", source="g.yml")):
        assert located(error, config) is error
    elsewhere = located(ConfigurationError("no", key="log.exchanges"), config)
    assert str(elsewhere) == f"{config}: no"


def test_a_key_and_its_hash(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, _ = said(capsys, "--new-key")
    made = yaml.safe_load(out)
    assert status == 0
    assert KeyHash.parse(made["hash"]).fits(made["key"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("a key that is long enough\n"))
    hashed = yaml.safe_load(said(capsys, "--hash-key")[1])["hash"]
    assert KeyHash.parse(hashed).fits("a key that is long enough")
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    status, out, err = said(capsys, "--hash-key")
    assert (status, out) == (2, "")
    assert "short" not in err.replace("shortest", "")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "give a file; `crosswalk serve --example` prints one"),
        (["none.yml"], "none.yml: No such file or directory"),
        (["CONFIG", "--host", "0.0.0.0"], "without keys, everybody who reaches 0.0.0.0 could use it"),
        (["CONFIG", "--port", "70000"], "expected a port, from 0 to 65535"),
        (["CONFIG", "--host", "127.0.0.2.example.invalid"], "without keys"),
        (["CONFIG", "--workers", "0"], "expected a whole number above 0"),
    ],
)
def test_what_cannot_be_served_is_said(
    config: Path, capsys: pytest.CaptureFixture[str], words: list[str], error: str
) -> None:
    status, out, err = said(capsys, *(str(config) if word == "CONFIG" else word for word in words))
    assert (status, out) == (2, "")
    assert err.startswith("crosswalk serve: ")
    assert error in err


def test_an_address_that_is_taken(
    config: Path, capsys: pytest.CaptureFixture[str], upstream: ReplayServer
) -> None:
    port = upstream.url.rpartition(":")[2]
    status, _, err = said(capsys, str(config), "--port", port)
    assert status == 2
    assert f"cannot listen on 127.0.0.1:{port}: " in err


@pytest.mark.parametrize("file", ["none.pem", "g.yml"])
def test_certificates_that_are_none(config: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    config.write_text(config.read_text() + f"tls: {{certificate: {config.parent}/{file}, key: x}}")
    status, _, err = said(capsys, str(config), "--check")
    assert status == 2
    line = config.read_text().count("\n") + 1
    assert f"{config}, line {line}: tls: " in err


def test_without_the_extra_it_is_named(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("crosswalk_serve.app")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    status, _, err = said(capsys, str(config))
    assert status == 2
    assert "pip install 'crosswalk-llm[serve]'" in err


# ------------------------------------------------------------------------------------ processes


@contextmanager
def serving(config: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A gateway in a separate process, and its address."""
    command = [sys.executable, "-m", "crosswalk", "serve", str(config), *words]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COVERAGE_CORE": "sysmon"}
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"listening on (http://\S+); models: tiny$", line)
        assert found, line + process.stderr.read()
        yield found[1], process
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
        print(rest)


def ask(url: str) -> str:
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(HI).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_it_serves_until_it_is_told_to_end(config: Path, upstream: ReplayServer) -> None:
    upstream.add(says("Hello"))
    with serving(config) as (url, process):
        assert ask(url) == "Hello"
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_several_processes_serve_and_count_together(config: Path, upstream: ReplayServer) -> None:
    upstream.add(says("Hello"), times=None)
    config.write_text(config.read_text() + "metrics: true\n")
    with serving(config, "--workers", "2") as (url, process):
        for _ in range(8):
            assert ask(url) == "Hello"
        # A request is counted once its answer has gone out, of which the client may hear first.
        until = time.monotonic() + 60
        while requests_of(url) < 8 and time.monotonic() < until:
            pass
        assert requests_of(url) == 8
    assert process.returncode == 0


def test_a_process_that_is_slow_to_begin_is_given_time(config: Path) -> None:
    """uvicorn would begin another one after five seconds, and on a slow machine again and again."""
    assert server_config(None, load_config(config)).timeout_worker_healthcheck >= 20


def metric(url: str, name: str) -> float:
    """The value that Prometheus reads under *name*, or zero."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as page:
        found = re.search(rf"^{re.escape(name)} (\S+)$", page.read().decode(), re.MULTILINE)
    return 0.0 if found is None else float(found[1])


def requests_of(url: str) -> float:
    """How many requests were answered."""
    labels = 'form="openai-chat",key="",model="tiny",status="200"'
    return metric(url, f"crosswalk_serve_requests_total{{{labels}}}")


def running(url: str) -> float:
    """How many requests are being answered. A worker that is killed may take the question with it."""
    for _ in range(100):
        with suppress(OSError, http.client.HTTPException):
            return metric(url, "crosswalk_serve_running")
    raise AssertionError("no worker answers")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the processes where Linux lists them")
def test_what_a_process_that_died_was_doing_is_not_done_any_more(
    config: Path, upstream: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    upstream.add(says("Hello"), Stall())
    config.write_text(config.read_text() + "metrics: true\n")
    with serving(config, "--workers", "2") as (url, process):
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            body = json.dumps(HI).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            upstream.wait_for(lambda server: server.requests)
            assert running(url) == 1
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = [pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            assert len(workers) == 2
            for pid in workers:
                os.kill(int(pid), signal.SIGKILL)
            until = time.monotonic() + 60
            while running(url) and time.monotonic() < until:
                pass
            assert running(url) == 0
    assert list((tmp_path / "tmp").glob("crosswalk-serve-*")) == []


def test_a_folder_for_numbers_that_is_none(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config.write_text(config.read_text() + "metrics: true\n")
    words = (str(config), "--workers", "2")
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "none"))
    status, _, err = said(capsys, *words)
    assert (status, err) == (2, "crosswalk serve: PROMETHEUS_MULTIPROC_DIR: there is no such folder\n")
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")

    def full(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    status, _, err = said(capsys, *words)
    assert status == 2
    assert "(PROMETHEUS_MULTIPROC_DIR): Read-only file system" in err


def test_a_folder_for_numbers_that_is_named_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    with shared():
        (tmp_path / "gauge_livesum_0.db").write_bytes(b"")
        forget(0)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")
    forget(0)
    with shared():
        folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert folder.is_dir()
    assert not folder.exists()

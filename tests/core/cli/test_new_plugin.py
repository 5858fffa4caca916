"""``crosswalk new-plugin``. That the project installs and passes in a fresh environment: test_outside_package."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import normalize
from crosswalk.cli.new_plugin import _range, project_files
from crosswalk.plugin.registry import registry
from crosswalk.testing import check_capture, check_pair, load_captures, normalized, pairs

from .conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def made(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The project of a provider, its package on the path."""
    done = run("new-plugin", "night_heron")
    assert (done.status, done.err) == (0, "")
    project = tmp_path / "crosswalk-night-heron"
    monkeypatch.syspath_prepend(project / "src")
    for name in [name for name in sys.modules if name.startswith("crosswalk_night_heron")]:
        monkeypatch.delitem(sys.modules, name)
    return project


def test_it_says_what_it_wrote_and_what_comes_next(run: Run, made: Path, tmp_path: Path) -> None:
    files = sorted(f.relative_to(tmp_path).as_posix() for f in made.rglob("*") if f.is_file())
    again = run("new-plugin", "night_heron", "--directory", "elsewhere/deep")
    *written, last = again.out.splitlines()
    assert sorted(name.replace("elsewhere/deep", "crosswalk-night-heron") for name in written) == files
    assert last == "next: cd elsewhere/deep && pip install -e . && pytest"
    assert {
        "crosswalk-night-heron/pyproject.toml",
        "crosswalk-night-heron/README.md",
        "crosswalk-night-heron/src/crosswalk_night_heron/__init__.py",
        "crosswalk-night-heron/src/crosswalk_night_heron/py.typed",
        "crosswalk-night-heron/tests/captures/MANIFEST.jsonl",
        "crosswalk-night-heron/tests/snapshots/night_heron/answer.json",
    } <= set(files)


def test_the_project_s_metadata(made: Path) -> None:
    project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
    assert project["name"] == "crosswalk-night-heron"
    assert project["entry-points"]["crosswalk.providers"] == {
        "night_heron": "crosswalk_night_heron:plugin [type.model]"
    }
    # A plain install has to bring pytest and the kit.
    assert project["dependencies"] == [f"crosswalk-llm[testing]{_range(version('crosswalk-llm'))}"]
    assert project["optional-dependencies"]["test"] == project["dependencies"]


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("0.1.0", ">=0.1.0,<2"),
        ("0.12.3.dev4+gabc", ">=0.12.3.dev4,<2"),
        ("1.4.2", ">=1.4.2,<2"),
    ],
)
def test_which_versions_it_works_with(installed: str, expected: str) -> None:
    assert _range(installed) == expected


@pytest.mark.sweep
def test_its_mapping_keeps_every_promise_and_its_snapshots_are_true(
    made: Path, provider: Callable[[object, str], str]
) -> None:
    provider(import_module("crosswalk_night_heron").plugin, "night_heron")
    mapper = registry.mapper("night_heron")
    captures = load_captures(made / "tests/captures")
    assert [capture.case for capture in captures] == ["answer", "answer_stream", "busy"]
    for capture in captures:
        assert check_capture(mapper, capture, sample=None) == []
        stored = (made / f"tests/snapshots/night_heron/{capture.case}.json").read_bytes()
        # A change of the canonical JSON: write the templates of the snapshots anew.
        assert normalized(mapper, capture) == orjson.loads(stored)
    ((whole, streamed),) = pairs(captures)
    assert check_pair(mapper, whole, streamed) == []


def test_its_mapping_is_found_by_its_mark_alone(made: Path, provider: Callable[[object, str], str]) -> None:
    provider(import_module("crosswalk_night_heron").plugin, "night_heron")
    body = (made / "tests/captures/answer.response.json").read_bytes()
    response = normalize(body)
    assert (response.metadata.provider_id, response.text) == ("night_heron", "Let me look.")
    # Never taken for certain: what others may write as well.
    hooks = registry.mapper("night_heron")
    for event in ([], None, {}, {"type": "text", "text": "Hi"}, {"model": "night-heron-1"}, {"type": 7}):
        assert not hooks.recognizes(event), event


def test_its_error_inside_a_stream_keeps_what_came_before(
    made: Path, provider: Callable[[object, str], str]
) -> None:
    provider(import_module("crosswalk_night_heron").plugin, "night_heron")
    stream = b'{"type":"text","text":"Hel"}\n{"type":"error","error":{"code":"x","message":"internal server error"}}\n'
    response = normalize(stream, "night_heron")
    assert (response.text, response.finish_reason) == ("Hel", "error")
    assert response.error_info is not None
    assert response.error_info.kind == "server"


@pytest.mark.parametrize(
    "tool", [["check", "--select", "E,F,I,B,UP,SIM,RUF,C4,PIE,D1,TID"], ["format", "--check"]]
)
def test_its_code_is_in_order(made: Path, tool: list[str]) -> None:
    command = [sys.executable, "-m", "ruff", *tool, "--isolated", "--line-length", "110", "."]
    done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name",
    ["", "Acme", "9lives", "-x", "a--b", "a_", "a b", "é", "a/b", "..", "a\n", "a.b", "x" * 61, "$name"],
)
def test_what_makes_no_provider_id_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    done = run("new-plugin", "--", name)
    assert (done.status, done.out) == (2, "")
    assert "is not a provider id" in done.err
    assert len(done.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_crosswalk_itself_is_refused(run: Run) -> None:
    done = run("new-plugin", "llm")
    assert (done.status, done.out) == (2, "")
    assert "'llm' would be the package crosswalk-llm, which is Crosswalk itself" in done.err


@pytest.mark.parametrize("name", ["ollama", "openai-responses"])
def test_a_provider_that_is_there_already_is_refused(run: Run, name: str) -> None:
    done = run("new-plugin", name)
    assert (done.status, done.out) == (2, "")
    assert f"there is a provider '{name.replace('-', '_')}' already, from crosswalk" in done.err


def test_one_registered_in_the_program_has_no_distribution(
    run: Run, provider: Callable[[object, str], str]
) -> None:
    class Nothing:
        pass

    provider(Nothing(), "heron")
    assert run("new-plugin", "heron").err == "crosswalk new-plugin: there is a provider 'heron' already\n"


def test_nothing_is_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "empty").mkdir()
    done = run("new-plugin", "heron", "--directory", "mine")
    assert (done.status, done.err) == (
        2,
        "crosswalk new-plugin: mine is not empty: nothing is written over\n",
    )
    done = run("new-plugin", "heron", "--directory", "file")
    assert (done.status, done.err) == (2, "crosswalk new-plugin: file: Not a directory\n")
    assert [f.name for f in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    assert run("new-plugin", "heron", "--directory", "empty").status == 0


def test_on_a_full_disk_nothing_is_left_and_the_next_try_is_a_first_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = Path.write_bytes, iter(range(3))

    def full(path: Path, *args: Any, **more: Any) -> int:
        if next(room, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, *args, **more)

    with monkeypatch.context() as small:
        small.setattr(Path, "write_bytes", full)
        done = run("new-plugin", "heron", "--directory", "mine")
    assert (done.status, done.out) == (2, "")
    assert "No space left on device" in done.err
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
    assert run("new-plugin", "heron", "--directory", "mine").status == 0


def test_no_name_makes_code_that_contradicts_itself() -> None:
    """The names of the package's own classes are no trap."""
    assert {path.suffix for path in project_files("a")} >= {
        ".py",
        ".toml",
        ".md",
        ".json",
        ".jsonl",
        ".ndjson",
    }
    for name in ("usage-info", "plugin", "crosswalk", "test", "a", "none", "class", "tern2"):
        for path, text in project_files(name).items():
            assert "$" not in text, path
            if path.suffix == ".py":
                compile(text, str(path), "exec")
    assert "class UsageInfoPlugin" in "".join(project_files("usage-info").values())


def test_captures_of_ones_own_come_with_drafts_of_statements(run: Run, tmp_path: Path) -> None:
    """In the place of the examples, with what their manifest says and their requests. A statement that is there stays."""
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "talk.response.json").write_bytes(b'{"say": "Hi", "model": "m-1", "tokens": 7}')
    (ours / "talk.request.json").write_bytes(b'{"model": "m-1", "max_tokens": 7}')
    (ours / "text_stream.response.sse").write_bytes(
        b"event: output\ndata: Once\n\nevent: output\ndata: 2\n\n"
    )
    (ours / "busy.response.json").write_bytes(b"{}")
    (ours / "busy.says.json").write_bytes(b'{"error": "rate_limit"}')
    (ours / "MANIFEST.jsonl").write_text(
        '{"file":"busy.response.json","status":429,"path":"/v1/x","content_type":"application/json; x=y"}\n'
    )
    done = run("new-plugin", "heron", "--captures", "ours")
    assert (done.status, done.err) == (0, "")
    tests = tmp_path / "crosswalk-heron/tests"
    assert not (tests / "snapshots").exists()
    assert done.out.splitlines()[-4:] == [
        "no table, for an event is not an object: the mapping still reads the invented API",
        "next: correct the drafts crosswalk-heron/tests/captures/*.says.json",
        "next: write the mapping, crosswalk-heron/src/crosswalk_heron/__init__.py",
        "next: cd crosswalk-heron && pip install -e . && pytest --snapshot-update",
    ]
    captures = {capture.case: capture for capture in load_captures(tests / "captures")}
    assert sorted(captures) == ["busy", "talk", "text_stream"]
    busy = captures["busy"]
    assert (busy.status, busy.path, busy.content_type) == (429, "/v1/x", "application/json")
    assert (busy.says, captures["talk"].says) == ({"error": "rate_limit"}, None)
    assert (tests / "captures/talk.request.json").read_bytes() == (ours / "talk.request.json").read_bytes()
    draft = orjson.loads((tests / "captures/talk.says.json").read_bytes())
    assert (draft["finish"], draft["model"], draft["found"]["say"]) == ("length", "m-1", "Hi")
    text = orjson.loads((tests / "captures/text_stream.says.json").read_bytes())
    assert text["found"] == {"data": "Once"}


@pytest.mark.parametrize("content", [None, b"{"])
def test_captures_that_cannot_be_read(run: Run, tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "ours").mkdir()
    if content is not None:
        (tmp_path / "ours/MANIFEST.jsonl").write_bytes(content)
    done = run("new-plugin", "heron", "--captures", "ours")
    assert (done.status, "ours" in done.err) == (2, True)
    assert not (tmp_path / "crosswalk-heron").exists()

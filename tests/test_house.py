"""The surroundings of the code: the forge's files, the locks and the way to release."""

from __future__ import annotations

import os
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest
import yaml

import crosswalk
from crosswalk import normalize_stream

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_the_forge_runs_what_ci_runs_on_every_python_that_is_named() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())["jobs"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert jobs["check"]["strategy"]["matrix"]["python"] == named
    assert {"run": "sh .ci/run"} in jobs["check"]["steps"]


def test_the_pages_promise_the_platforms_that_are_tested() -> None:
    """The versions and the system of the workflow, in each place that names some."""
    job = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())["jobs"]["check"]
    *first, last = job["strategy"]["matrix"]["python"]
    assert job["runs-on"].startswith("ubuntu")
    assert f"CPython {', '.join(first)} and {last}, on Linux" in (ROOT / "docs/versions.md").read_text()
    assert f"CPython {', '.join(first)} or {last} on Linux" in (ROOT / "README.md").read_text()
    assert f"CPython {', '.join(first)} and {last} on Linux" in (ROOT / "CHANGELOG.md").read_text()
    systems = [one for one in PROJECT["classifiers"] if one.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_runs_what_there_is_with_the_tags_that_the_version_needs(file: Path) -> None:
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["fetch-depth"] == 0
            for path in re.findall(
                r"(?:sh|python|-r) ((?:scripts|\.ci|requirements)/[\w./]+)", step.get("run", "")
            ):
                assert (ROOT / path).is_file(), path


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda file: file.name
)
def test_an_issue_form_can_be_read(file: Path) -> None:
    form = yaml.safe_load(file.read_text())
    if file.stem != "config":
        assert {"name", "description", "body"} <= set(form)
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields)


def test_pre_commit_runs_tools_of_the_checks() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    checks = (ROOT / "scripts/check").read_text()
    for hook in repository["hooks"]:
        tool = hook["entry"].removeprefix("python -m ").split()[0]
        assert re.search(rf"\b{tool}\b", checks), tool
        assert {"id", "name", "language"} <= set(hook)


# ------------------------------------------------------------------------------------ locks


def modules_of(chunk: bytes, before: list[bytes]) -> set[str]:
    """The modules of the library that read a live *chunk* of vLLM's, the last of the stream so far, until its delta."""
    entered: set[str] = set()
    library = Path(crosswalk.__file__).parent

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and library in file.parents:
            entered.add(file.relative_to(library).as_posix())

    def chunks() -> Iterator[bytes]:
        yield from before
        sys.setprofile(note)
        yield chunk

    try:
        for delta in normalize_stream(chunks(), "vllm"):
            if sys.getprofile() is not None:
                assert delta.content_delta
                break
    finally:
        sys.setprofile(None)
    return entered | {"mapping/normalize.py"}  # which was entered when the first delta was asked for


def test_the_modules_that_read_a_chunk_are_those_of_contributing() -> None:
    """A chunk that is like the one before passes the first table of modules, any other one both."""
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("### One chunk")[2].partition("\n## ")[0]
    tables = page.partition("Every other chunk")[::2]
    few, more = (set(re.findall(r"^\| `([\w/]+\.py)`", table, re.MULTILINE)) for table in tables)
    stream = (ROOT / "tests/captures/vllm/chat_emoji_stream.response.sse").read_bytes()
    first, second, third, fourth, *_ = (event + b"\n\n" for event in stream.split(b"\n\n"))
    assert modules_of(second, [first]) == few | more
    assert modules_of(fourth, [first, second, third]) == few


def pinned(file: str) -> dict[str, str]:
    """The version of each package that *file* pins, with its marker."""
    lines = re.findall(r"^([\w.-]+)==([^\s\\]+)(.*?)\\?$", (ROOT / file).read_text(), re.MULTILINE)
    return {name: version + marker.strip() for name, version, marker in lines}


def test_a_plugin_may_import_one_module_of_the_library() -> None:
    """A new module is not a back door: plugins may import the names in :mod:`crosswalk.plugins`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (front_door,) = (one for one in contracts if one["name"] == "plugins come through the front door")
    modules = {f"crosswalk.{module.name}" for module in pkgutil.iter_modules(crosswalk.__path__)}
    assert modules - {*front_door["forbidden_modules"]} == {"crosswalk.__main__", "crosswalk.plugins"}


def test_both_locks_hold_the_same_versions_and_one_a_hash_of_each_file() -> None:
    """``dev.lock`` also holds what the extra ``sdks`` needs, which only a thorough run takes."""
    both, hashed = pinned("dev.lock"), pinned("requirements/dev.txt")
    assert {name: both.get(name) for name in hashed} == hashed
    assert {"cohere", "mistralai"} <= both.keys() - hashed.keys()
    blocks = re.split(r"^(?=[\w.-]+==)", (ROOT / "requirements/dev.txt").read_text(), flags=re.MULTILINE)[1:]
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_the_locks_hold_all_that_the_project_needs() -> None:
    """After a change of the dependencies: ``sh scripts/lock``."""
    extras = PROJECT["optional-dependencies"]
    used = ["sdks", "dev", *re.search(r"crosswalk-llm\[(.*)\]", extras["dev"][0])[1].split(",")]  # type: ignore[index]
    wanted = [*PROJECT["dependencies"], *(one for extra in used for one in extras[extra])]
    names = {re.split(r"[<>=\[; ]", one)[0].lower() for one in wanted} - {PROJECT["name"]}
    assert names - set(pinned("dev.lock")) == set()


# ------------------------------------------------------------------------------------ releases


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A small repository with what a release looks at, at the tag v0.7.0."""
    folder = tmp_path / "clone"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/release", folder / "scripts")
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## [0.7.0] - 2027-01-31\n\n- Something.\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Release 0.7.0"], ["tag", "v0.7.0"]):
        git(folder, *command)
    return folder


def git(folder: Path, *command: str) -> None:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, *command], cwd=folder, env=plain(), check=True, capture_output=True)


def plain() -> dict[str, str]:
    """An environment without settings of git, in which building ends the script at once."""
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PYTHON": "false"}


def released(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["sh", "scripts/release", *arguments],
        cwd=folder,
        env=plain(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.stderr.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_release_is_refused_where_something_does_not_fit(clone: Path) -> None:
    assert released(clone, "v0.7.0") == ""  # everything fits, and the Python that builds is false
    assert released(clone, "v0.8.0") == 'CHANGELOG.md has no section "## [0.8.0]"'
    git(clone, "tag", "-d", "v0.7.0")
    assert released(clone, "v0.7.0") == "HEAD is not v0.7.0"
    git(clone, "tag", "v0.7.0")
    (clone / "new.py").touch()
    assert released(clone, "v0.7.0") == "there are changes that are not committed"
    (clone / "new.py").unlink()
    (clone / "CHANGELOG.md").write_text("## [0.7.0] - unreleased\n")
    git(clone, "commit", "-qam", "Undo")
    git(clone, "tag", "-f", "v0.7.0")
    assert released(clone, "v0.7.0") == 'CHANGELOG.md has no section "## [0.7.0] - YYYY-MM-DD"'
    assert (
        released(clone, "v0.7.0", "--dry-run") == ""
    )  # a dry run needs no date, no tag and no clean checkout
    assert released(clone, "v0.9.0", "--dry-run") == 'CHANGELOG.md has no section "## [0.9.0]"'
    assert released(clone, "--dry-run") == ""  # the newest of the changelog
    for wrong in ((), ("0.7.0",), ("v0.7.0", "--dry"), ("--dry-run", "0.7.0")):
        assert released(clone, *wrong) == "usage: sh scripts/release vX.Y.Z | --dry-run [vX.Y.Z]"


def test_links_of_the_long_description_are_absolute_or_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    interface = "hatchling.metadata.plugin.interface"  # of the build's environment
    for part in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, part, SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, interface, SimpleNamespace(MetadataHookInterface=object))
    metadata = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts/package_metadata.py")))
    readme = "![A](docs/a.svg) [B](docs/b.md#c) [D](https://d.example) [E](#e)"
    assert metadata.long_description(readme, "") == " B [D](https://d.example) [E](#e)"
    assert metadata.long_description(readme, "https://r.example/o/n") == (
        "![A](https://r.example/o/n/raw/main/docs/a.svg) [B](https://r.example/o/n/blob/main/docs/b.md#c)"
        " [D](https://d.example) [E](#e)"
    )
    assert metadata.urls("") == {}
    assert metadata.urls("https://r.example/o/n")["Issues"] == "https://r.example/o/n/issues"

"""README and docs cannot rot: their examples run, their links lead somewhere, and they name what there is."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import crosswalk
from crosswalk.cli.new_plugin import project_files
from crosswalk.plugin.hooks import ProviderHooks
from crosswalk_observe import uninstall
from pages import ROOT, blocks, environment, pages, run, write_files

TUTORIAL = ROOT / "docs" / "writing-a-plugin.md"
WRITING = [ROOT / "docs" / name for name in ("upgrades.md", "batch.md", "batch-layouts.md")]
HOOKS = [
    function
    for _, function in inspect.getmembers(ProviderHooks, inspect.isfunction)
    if hasattr(function, "crosswalk_spec")
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def _unwatched() -> Iterator[None]:
    """README shows how to watch everything."""
    yield
    uninstall()


# These ask servers that are not there: tests/test_coming_from.py and tests/contrib/observe/test_page.py run them.
ASKING = {page for page in pages() if page.name.startswith("from-") or page.name == "observe.md"}


@pytest.mark.untraced
@pytest.mark.parametrize("page", [page for page in pages() if page not in ASKING], ids=name_of)
def test_the_examples_of_a_page_run(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    if page == TUTORIAL:
        write_tutorial(tmp_path)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path / "src")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
        # It may have looked already which packages are installed; and other tests find it as it was.
        for name, value in {"_installed": None, "_signs": None, "_mappers": {}}.items():
            monkeypatch.setattr(crosswalk.registry, name, value)
    elif page in WRITING:  # they write files
        for name in ("tests", "snapshots"):
            (tmp_path / name).symlink_to(ROOT / name)
        monkeypatch.chdir(tmp_path)
    run(page)


# ------------------------------------------------------------------------------------ what the pages name


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)
def test_a_hook_has_a_heading_with_its_signature(hook: Callable[..., object]) -> None:
    signature = f"{hook.__name__}({', '.join([*inspect.signature(hook).parameters][1:])})"
    headings = re.findall(r"^## `(.+)`$", (ROOT / "docs/hooks.md").read_text(), re.MULTILINE)
    assert signature in headings


def test_every_public_name_is_on_some_page() -> None:
    text = "\n".join(page.read_text() for page in pages())
    words = set(
        re.findall(r"\w+", "\n".join(re.findall(r"`[^`\n]+`|^```.*?^```", text, re.MULTILINE | re.DOTALL)))
    )
    assert set(crosswalk.__all__) - words == set()


def anchors(page: Path) -> set[str]:
    """The places in *page* that a link can lead to, as GitHub names them."""
    outside_blocks = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", outside_blocks, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name not in index] == ["index.md"]


def test_nobody_is_sent_to_numbers_that_stand_nowhere() -> None:
    """Requirements and documents of the planning are no user's to look up. Docstrings show on every hover."""
    sources = [
        file
        for folder in ("core", "plugins", "contrib", "examples", "benchmarks")
        for file in (ROOT / folder).rglob("*.py")
    ]
    pattern = re.compile(r"\bN?FR-\d|\bseeds? \d{3}\b|\bseed's\b|\bdesign,? section\b", re.IGNORECASE)
    assert [name_of(file) for file in [*pages(), *sources] if pattern.search(file.read_text())] == []


def test_every_extra_that_is_named_is_one() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [file for folder in ("core", "plugins", "contrib") for file in (ROOT / folder).rglob("*.py")]
    pattern = re.compile(r"\bextra ``([\w-]+)``|\bcrosswalk-llm\[([\w-]+)\]")
    named = {
        (name_of(file), in_words or in_command)
        for file in (*pages(), *sources)
        for in_words, in_command in pattern.findall(file.read_text())
    }
    assert len(named) > 10
    assert [each for each in named if each[1] not in extras] == []


# ------------------------------------------------------------------------------------ the two commands


INSTALL = "python3 -m venv .venv && . .venv/bin/activate && pip install "


def commands() -> list[str]:
    """The shell commands of README in order, each as one line: install a clone and see, install, the demo, all checks."""
    return [re.sub(r" \\\n\s*", " ", block.strip()) for block in blocks(ROOT / "README.md", "sh")]


def test_readme_installs_what_the_package_is_called() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert commands()[1] == f"{INSTALL}{project['name']}"


def test_the_first_command_reads_two_real_streams() -> None:
    installed, _, normalize = commands()[0].rpartition(" && ")
    assert installed == f"{INSTALL}."
    _, *arguments = shlex.split(normalize)
    done = subprocess.run(
        ["crosswalk", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        executable=str(Path(sys.executable).parent / "crosswalk"),
    )
    assert done.returncode == 0, done.stderr
    read = [response["metadata"]["provider_id"] for response in json.loads(done.stdout)]
    assert read == ["ollama", "vllm"]


@pytest.mark.sweep
def test_the_demo_needs_nothing() -> None:
    done = subprocess.run(
        commands()[2], shell=True, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.count("The answer is forty-two!") == 2


def test_the_last_command_is_what_continuous_integration_runs() -> None:
    installed, _, check = commands()[-1].rpartition(" && ")
    ran = (ROOT / ".ci/run").read_text()
    assert check == "sh scripts/check"
    assert check in ran
    assert installed.startswith(INSTALL)
    assert installed.removeprefix(INSTALL) in ran


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(len(blocks(ROOT / "README.md", "python"))))
def test_a_program_of_readme_runs_alone_and_anywhere(number: int, tmp_path: Path) -> None:
    program = blocks(ROOT / "README.md", "python")[number]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("number", "shown"), [(0, 0), (2, 1)], ids=["first", "ask"])
def test_a_program_of_readme_prints_what_is_shown_below_it(number: int, shown: int) -> None:
    program, output = blocks(ROOT / "README.md", "python")[number], blocks(ROOT / "README.md", "text")[shown]
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == output.strip()  # an answer begins with the blank lines that the model sent


def test_importing_crosswalk_is_as_light_as_readme_promises() -> None:
    code = "import sys; before = set(sys.modules); import crosswalk; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    inside = {name for name in done.stdout.split() if name.startswith("crosswalk")}
    assert inside == {"crosswalk", "crosswalk.lazy"}
    assert not loaded & {
        "crosswalk_ollama",
        "crosswalk_vllm",
        "argparse",
        "http",
        "httpx",
        "httpx2",
        "rich",
        "urllib",
    }


# ------------------------------------------------------------------------------------ the tutorial's plugin


def write_tutorial(folder: Path) -> None:
    """Write the package of the tutorial, with the metadata that installing it would leave.

    It is what ``crosswalk new-plugin`` makes, without the examples, and with the files of the page in their place.
    """
    for path, text in project_files("acme").items():
        if path.parts[1:2] not in (("captures",), ("snapshots",)):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    (entry,) = re.findall(r'^acme = ".*"$', TUTORIAL.read_text(), re.MULTILINE)
    project_file = folder / "pyproject.toml"
    project_file.write_text(re.sub(r'^acme = ".*"$', entry, project_file.read_text(), flags=re.MULTILINE))
    write_files(TUTORIAL, folder)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    [(group, points)] = project["entry-points"].items()
    metadata = folder / "src" / f"crosswalk_acme-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [f"{name} = {target}" for name, target in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """The folder of the tutorial's package."""
    write_tutorial(tmp_path)
    return tmp_path


def check(project: Path, *options: str, traced: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the tests of *project* as its author would. *traced* where it is right, for it is the kit that they run."""
    tracing = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_") and traced}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=project,
        env=environment(PYTHONPATH=str(project / "src"), **tracing),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tutorial_starts_with_the_files_that_new_plugin_writes(tmp_path: Path) -> None:
    command, *expected = blocks(TUTORIAL, "sh")[0].splitlines()
    done = subprocess.run(
        shlex.split(command)[1:], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == expected


def test_the_plugin_of_the_tutorial_passes_the_kit(acme: Path) -> None:
    first = check(acme, "--snapshot-update", traced=True)
    assert first.returncode == 0, first.stdout
    assert len(list((acme / "tests/snapshots/acme").iterdir())) == len(
        list((acme / "tests/captures").glob("*response*"))
    )
    second = check(acme, "--crosswalk-sample", "all", traced=True)
    assert second.returncode == 0, second.stdout
    assert "3 snapshots passed" in second.stdout


@pytest.mark.parametrize(
    ("number", "right", "wrong"),
    [
        (
            0,
            'kind = take_string(event, "kind")',
            'kind = take_string(event, "kind"); event.pop("region", None)',
        ),
        pytest.param(
            1,
            'if text := take_string(event, "text"):',
            'if text := event["text"] if kind == "piece" else take_string(event, "text"):',
            marks=pytest.mark.sweep,
        ),
        pytest.param(
            2, 'take_objects(event, "calls")', '[event.pop("calls", None)][:0]', marks=pytest.mark.sweep
        ),
    ],
    ids=["takes too much", "reads carelessly", "forgets"],
)
def test_the_kit_says_of_a_wrong_plugin_what_the_tutorial_shows(
    acme: Path, number: int, right: str, wrong: str
) -> None:
    file = acme / "src/crosswalk_acme/__init__.py"
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, wrong))
    done = check(acme, traced=True)
    assert done.returncode == 1
    shown = " ".join(blocks(TUTORIAL, "text")[number].split())  # folded on the page
    assert shown in " ".join(done.stdout.split())

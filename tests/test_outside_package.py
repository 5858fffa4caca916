"""A stranger's provider, built and installed as a stranger would: nothing of it lies in this repository."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosswalk.testing import Corpus

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.sweep  # environments with packages are made
VERSION = "0.7"

PYPROJECT = f"""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "crosswalk-parrot"
version = "{VERSION}"
dependencies = ["crosswalk-llm"]

[project.entry-points."crosswalk.providers"]
parrot = "crosswalk_parrot"
dodo = "crosswalk_parrot.dodo"

[project.entry-points."crosswalk.commands"]
repeat = "crosswalk_parrot.repeat"

[tool.hatch.build.targets.wheel]
packages = ["crosswalk_parrot"]
"""
PARROT = """
from crosswalk import ResponseDelta
from crosswalk.plugins import hookimpl

@hookimpl
def map_delta(event, state):
    return [ResponseDelta(content_delta=event["said"])]

@hookimpl
def recognizes(event):
    return 2 if "said" in event else 0
"""
DODO = """
raise SystemExit("this bird has died")
"""

REPEAT = '''
"""Read an answer and say it as often as you like."""

import argparse
import json
from pathlib import Path

from crosswalk import normalize
from crosswalk.commands import OK, UsageError, whole_number, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="FILE")
    parser.add_argument("--times", type=whole_number, default=2)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.paths:
        raise UsageError("name a file")
    for path in arguments.paths:
        for _ in range(arguments.times):
            write_text(json.dumps(normalize(Path(path).read_bytes()).text) + "\\n")
    return OK
'''

LISTING = """
import json, sys
from crosswalk import registry
found = {p.name: [p.distribution, p.version, p.target, p.blocked] for p in registry.providers()}
print(json.dumps([found, [name for name in sys.modules if name.startswith("crosswalk_")]]))
"""
USE = """
import json
from crosswalk import normalize, normalize_stream, registry, to_jsonable
mapper = registry.mapper("parrot")
body = normalize({"said": "Hello", "mood": "good"}, "parrot")
detected = normalize(b'{"said": "Hel"}\\n{"said": "lo"}\\n')
stream = normalize_stream([b'{"said": "Hel"}\\n{"sa', b'id": "lo"}\\n'], "parrot")
print(json.dumps([
    mapper.provider, body.text, body.metadata.extensions["mood"], detected.metadata.provider_id,
    [delta.content_delta for delta in stream], stream.response.text, to_jsonable(body)["finish_reason"],
]))
"""
OVERRIDE = """
import json
from crosswalk import FinishReason, normalize, registry
from crosswalk.plugins import hookimpl

class Louder:
    @hookimpl(wrapper=True)
    def map_delta(self, event):
        deltas = yield
        return [type(d)(content_delta=d.content_delta.upper()) for d in deltas]

before = normalize({"said": "Hello"}, "parrot").text
louder = Louder()
registry.register(louder, "parrot")
during = normalize({"said": "Hello"}, "parrot").text
registry.unregister(louder, "parrot")
print(json.dumps([before, during, normalize({"said": "Hello"}, "parrot").text]))
"""
BLOCKED = """
import json, sys
from crosswalk import UnknownProviderError, normalize, registry
try:
    registry.mapper("parrot")
except UnknownProviderError as error:
    print(json.dumps([str(error), sorted(error.known), "crosswalk_parrot" in sys.modules]))
"""
BROKEN = """
import json
from crosswalk import PluginError, normalize, registry
try:
    registry.mapper("dodo")
except PluginError as error:
    said = [str(error), error.plugin, error.distribution]
line = {"model": "m", "response": "Hi", "done": True, "done_reason": "stop"}
print(json.dumps([*said, normalize({"said": "Hello"}).text, normalize(line).text, registry.names()]))
"""

CORPUS = """
import json
from pathlib import Path
from urllib.request import Request, urlopen
from crosswalk import registry
from crosswalk.testing import Corpus, compare_answer, normalized
from crosswalk.testing.replay import ReplayServer

corpus = Corpus.installed()
problems, counts = [], {}
for provider in corpus.providers():
    loaded = corpus.load(provider)
    counts[provider] = len(loaded)
    capture, canonical = loaded[0]
    problems += map(str, compare_answer(capture, canonical, normalized(registry.mapper(provider), capture)))
capture = next(one for one, _ in corpus.load("vllm") if one.stream and one.status == 200)
with ReplayServer([capture]) as server:
    asked = Request(server.url + capture.path, b'{"stream": true}', {"content-type": "application/json"})
    replayed = urlopen(asked).read() == capture.body
print(json.dumps([counts, problems, replayed, str(corpus.captures)]))
"""

ENTRY_POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
SHIPPED = sorted(ENTRY_POINTS["crosswalk.providers"])
PACKAGES = (
    "crosswalk",
    *sorted({target.split(".")[0].split(":")[0] for target in ENTRY_POINTS["crosswalk.providers"].values()}),
)

Run = Callable[..., Any]


def run(*command: str | Path, **environment: str) -> str:
    """The output of *command*, with nothing of this repository on its path."""
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "COV", "CROSSWALK_"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        cwd="/",
        env={**clean, **environment},
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, out: Path) -> Path:
    """The wheel of the project at *source*."""
    isolation = ["--no-isolation"] if importlib.util.find_spec("hatch_vcs") else []
    run(sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", out, source)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with both wheels in it."""
    folder = tmp_path_factory.mktemp("outside")
    parrot = folder / "parrot"
    (parrot / "crosswalk_parrot").mkdir(parents=True)
    (parrot / "pyproject.toml").write_text(PYPROJECT)
    (parrot / "crosswalk_parrot/__init__.py").write_text(PARROT)
    (parrot / "crosswalk_parrot/dodo.py").write_text(DODO)
    (parrot / "crosswalk_parrot/repeat.py").write_text(REPEAT)
    wheels = [build(ROOT, folder / "ours"), build(parrot, folder / "theirs")]
    environment = folder / "venv"
    uv = shutil.which("uv")
    venv.create(environment, with_pip=uv is None)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if uv is not None:
        run(uv, "pip", "install", "--quiet", "--python", python, *wheels)
    else:
        quietly = ("--quiet", "--disable-pip-version-check", "--no-compile")
        run(python, "-m", "pip", "install", *quietly, *wheels)
    return python


@pytest.fixture
def ask(python: Path) -> Run:
    """Runs a program in that environment and reads the JSON that it prints."""
    # -I: nothing but what is installed is on the path.
    return lambda program, **environment: json.loads(run(python, "-I", "-c", program, **environment))


def test_a_strangers_provider_is_listed(ask: Run) -> None:
    """It is listed with the shipped ones, with its distribution, and no plugin was imported for it."""
    found, imported = ask(LISTING)
    assert found["parrot"] == ["crosswalk-parrot", VERSION, "crosswalk_parrot", False]
    assert {found[name][0] for name in SHIPPED} == {"crosswalk-llm"}
    assert imported == []


def test_a_strangers_provider_is_used(ask: Run) -> None:
    """One function makes a provider: bodies, streams and detection."""
    assert ask(USE) == [
        "parrot",
        "Hello",
        "good",
        "parrot",
        ["Hel", "lo", None],
        "Hello",
        "stop",
    ]


def test_a_strangers_provider_can_be_overridden(ask: Run) -> None:
    """A wrapper of the program's own takes effect, and goes again."""
    assert ask(OVERRIDE) == ["Hello", "HELLO", "Hello"]


def test_a_strangers_provider_can_be_blocked(ask: Run) -> None:
    """By environment it is never imported, and listed as blocked."""
    said, known, imported = ask(BLOCKED, CROSSWALK_DISABLED_PLUGINS="parrot")
    assert said == "provider 'parrot' is blocked"
    assert known == sorted(["dodo", *SHIPPED])
    assert not imported
    assert ask(LISTING, CROSSWALK_DISABLED_PLUGINS="parrot")[0]["parrot"][3] is True


def test_a_broken_provider_hurts_nobody(ask: Run) -> None:
    """It is named with its distribution and cause. The others work, detection among all of them too."""
    said, plugin, distribution, parrot, ollama, names = ask(BROKEN)
    assert said == (
        "provider 'dodo' (from distribution 'crosswalk-parrot'): it cannot be imported: "
        "SystemExit: this bird has died"
    )
    assert (plugin, distribution) == ("dodo", "crosswalk-parrot")
    assert (parrot, ollama) == ("Hello", "Hi")
    assert names == sorted(["dodo", "parrot", *SHIPPED])


def test_a_strangers_command_runs(python: Path, tmp_path: Path) -> None:
    """Installed with Crosswalk it is a command like any other: listed, explained, run, and with its own errors."""
    crosswalk = python.parent / "crosswalk"
    answer = tmp_path / "answer.json"
    answer.write_bytes(b'{"said": "Hello"}')
    assert "from crosswalk-parrot" in run(crosswalk, "--help")
    assert "as often as you like" in run(crosswalk, "repeat", "--help")
    assert run(crosswalk, "repeat", answer) == '"Hello"\n"Hello"\n'
    assert run(crosswalk, "repeat", answer, "--times", "1", answer) == '"Hello"\n"Hello"\n'
    wrong = subprocess.run([crosswalk, "repeat"], capture_output=True, text=True, cwd="/", check=False)
    assert (wrong.returncode, wrong.stderr) == (2, "crosswalk repeat: name a file\n")


def test_the_wheel_is_complete(python: Path) -> None:
    """Types are marked, and every module of the installed packages can be imported."""
    program = f"""
import importlib, json, pkgutil
from pathlib import Path
found = []
for name in {PACKAGES!r}:
    package = importlib.import_module(name)
    assert (Path(package.__file__).parent / "py.typed").is_file(), name
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if ".testing" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            found.append(module.name)
print(json.dumps(found))
"""
    modules = json.loads(run(python, "-I", "-c", program))
    assert "crosswalk.mapping.reader" in modules
    assert {"crosswalk_ollama.native", "crosswalk_anthropic.messages", "crosswalk_openai.lookalikes"} <= set(
        modules
    )


def test_the_wheel_is_named_as_the_docs_say(python: Path) -> None:
    """Its name on an index is not that of the import. It needs its own extras under that name."""
    program = """
import json, crosswalk
from importlib.metadata import metadata
found = metadata("crosswalk-llm")
print(json.dumps([found["Name"], found["Version"] == crosswalk.__version__, found.get_all("Requires-Dist")]))
"""
    name, same, needed = json.loads(run(python, "-I", "-c", program))
    assert (name, same) == ("crosswalk-llm", True)
    assert not [requirement for requirement in needed if requirement.startswith("crosswalk")]  # expanded
    assert run(python.parent / "crosswalk", "--version").startswith("crosswalk ")


def test_the_wheel_has_its_corpus_in_one_archive(python: Path, ask: Run, tmp_path: Path) -> None:
    """It is all that the repository has, serves the kit and a replay server, and leaves nothing behind."""
    counts, problems, replayed, folder = ask(CORPUS, TMPDIR=str(tmp_path))
    here = Corpus.installed()
    assert counts == {provider: len(here.load(provider)) for provider in here.providers()}
    assert problems == []
    assert replayed
    assert tmp_path in Path(folder).parents
    assert list(tmp_path.iterdir()) == []


def test_the_wheel_checks_and_shows_what_other_providers_sent(python: Path, tmp_path: Path) -> None:
    """The commands that read recordings find those of the corpus: no clone, and no pytest."""
    crosswalk = python.parent / "crosswalk"
    assert "xai: 5 captures, " in (
        checked := run(crosswalk, "check", "--corpus", "xai", "--provider", "xai", "--sample", "1")
    )
    assert "; 0 problems\n" in checked
    assert "/chat/completions, streamed" in run(crosswalk, "table", "zai")
    run(crosswalk, "samples", tmp_path / "samples")
    assert "exchanges" in run(crosswalk, "report", tmp_path / "samples/log.jsonl", "--by", "vendor,model")


def test_the_wheel_has_few_files(python: Path) -> None:
    """An installation takes as long as its files are many: the corpus is one of them, not 1,600."""
    program = """
import json
from importlib.metadata import files
print(json.dumps([str(file) for file in files("crosswalk-llm") if file.suffix != ".pyc"]))
"""
    installed = json.loads(run(python, "-I", "-c", program))
    assert [file for file in installed if "corpus" in file] == [
        "crosswalk/testing/corpus.py",
        "crosswalk/testing/corpus.zip",
    ]
    assert len(installed) < 500


def test_other_programs_unpack_the_corpus(python: Path, tmp_path: Path) -> None:
    """The line of the page, for a mapper in any language."""
    (line,) = [
        line.strip()
        for line in (ROOT / "docs/testing.md").read_text(encoding="utf-8").splitlines()
        if "zipfile -e" in line
    ]
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
    run("sh", "-c", f"cd {tmp_path} && {line}", PATH=path)
    assert sorted(one.name for one in (tmp_path / "corpus/tests/captures/xai").iterdir()) == sorted(
        one.name for one in (ROOT / "tests/captures/xai").iterdir()
    )


def test_the_version_is_that_of_the_tag(tmp_path: Path) -> None:
    """With a history of the last tag, without one a word for it: a downloaded copy installs as well."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def version() -> str:
        code = "import os, sys; from hatchling.cli import hatchling; os.chdir(sys.argv.pop()); sys.exit(hatchling())"
        return run(sys.executable, "-c", code, "version", tmp_path, **plain).strip()

    def git(*command: str) -> None:
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        run("git", "-C", tmp_path, *author, *command, **plain)

    assert version() == "0.1.dev0"
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert version().startswith("0.1.dev1+g")
    git("tag", "v1.2.3")
    assert version() == "1.2.3"
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert version().startswith("1.2.4.dev1+g")


def test_an_uninstalled_provider_is_gone(python: Path, ask: Run) -> None:
    """The last test of all: without its distribution the provider does not exist."""
    uv = shutil.which("uv")
    if uv is not None:
        run(uv, "pip", "uninstall", "--quiet", "--python", python, "crosswalk-parrot")
    else:
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "crosswalk-parrot")
    found, _ = ask(LISTING)
    assert sorted(found) == SHIPPED


def test_a_new_plugin_passes_its_tests_at_once(python: Path, tmp_path: Path) -> None:
    """``crosswalk new-plugin``, then the very command that it names: nothing else has to be installed or written."""
    project = tmp_path / "made"
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
    made = run(python, "-I", "-m", "crosswalk", "new-plugin", "night-heron", "--directory", project)
    command = made.splitlines()[-1].removeprefix("next: ")
    assert command == f"cd {project} && pip install -e . && pytest"
    if (uv := shutil.which("uv")) is not None:
        command = command.replace("pip install", f"{uv} pip install --python {python}")
    said = run("sh", "-c", command, PATH=path, PYTEST_ADDOPTS="")
    assert "3 snapshots passed" in said
    assert "skipped" not in said
    listed = run(python.parent / "crosswalk", "providers")
    assert "Night Heron" in listed

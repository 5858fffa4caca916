"""Packages have the names of their modules, say so to type checkers, and import nothing before a name is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import crosswalk
from crosswalk.lazy import face, pattern
from loading import loaded_by

ROOT = Path(__file__).parents[2]
SOURCES = {
    ".".join(file.relative_to(top).with_suffix("").parts).removesuffix(".__init__"): file
    for top in (ROOT / "core", ROOT / "plugins", ROOT / "contrib")
    for file in sorted(top.rglob("*.py"))
}
"""Every shipped module."""
FACES = sorted(
    name for name, file in SOURCES.items() if "face(" in file.read_text() and name != "crosswalk.lazy"
)
PACKAGES = [name for name in FACES if name not in ("crosswalk", "crosswalk.plugins", "crosswalk.testing")]
"""Those that load nothing but themselves."""


def typed(name: str) -> dict[str, str]:
    """The module of each name that type checkers and editors see."""
    found: dict[str, str] = {}
    for node in ast.parse(SOURCES[name].read_text()).body:
        if isinstance(node, ast.If) and node.orelse:
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                for alias in statement.names:
                    assert alias.asname == alias.name, f"{alias.name} is not exported: import it as itself"
                    found[alias.name] = str(statement.module)
    return found


def table(name: str) -> dict[str, str]:
    """The module of each name that the interpreter gets."""
    (call,) = (
        node
        for node in ast.walk(ast.parse(SOURCES[name].read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "face"
    )
    listed = {
        each: module for module, names in ast.literal_eval(call.args[1]).items() for each in names.split()
    }
    for keyword in call.keywords:
        if keyword.arg == "modules":
            modules = ast.literal_eval(keyword.value)
            listed |= {each: path.rpartition(".")[0] for each, path in modules.items()}
    return listed


@pytest.mark.parametrize("name", FACES)
def test_a_type_checker_sees_what_is_there(name: str) -> None:
    """The imports for type checkers and the table are the same, and each name is that of its module."""
    called = {"convert": "crosswalk.convert.conversion"}  # the package is called as its function
    assert typed(name) == {**table(name), **(called if name == "crosswalk" else {})}
    package = import_module(name)
    for each, home in table(name).items():
        if home != "crosswalk.testing.conformance" or find_spec("syrupy"):
            there = getattr(import_module(home), each, None) or import_module(f"{home}.{each}")
            assert getattr(package, each) is there
    assert package.__all__ == sorted(set(package.__all__))
    assert set(package.__all__) | table(name).keys() <= set(dir(package))


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
APPLICATIONS = ("crosswalk_batch", "crosswalk_observe", "crosswalk_serve")
IMPORT = re.compile(
    rf"^ *(?:from|import) ((?:{'|'.join(APPLICATIONS)})[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE
)


@pytest.mark.parametrize("application", APPLICATIONS)
def test_pages_import_from_the_faces_of_applications(application: str) -> None:
    """A reader needs no module of an application, but for the one that has an extra of its own."""
    shown = [
        found
        for page in PAGES
        for found in IMPORT.findall(page.read_text())
        if found[0].startswith(application)
    ]
    assert shown
    for module, names in shown:
        assert module == application
        assert {name.strip() for name in names.split(",")} <= table(application).keys()


@pytest.mark.parametrize("name", PACKAGES)
def test_no_name_hides_a_module_of_its_package(name: str) -> None:
    own = {module.rpartition(".")[2] for module in SOURCES if module.rpartition(".")[0] == name}
    modules = {each for each in table(name) if isinstance(getattr(import_module(name), each), ModuleType)}
    assert own & table(name).keys() <= modules


def test_only_faces_list_their_names() -> None:
    """The others say by their ``class`` and ``def`` lines what they have. A star brings what a list says."""
    lists = {
        name for name, file in SOURCES.items() if re.search("^__all__ = ", file.read_text(), re.MULTILINE)
    }
    public = {"crosswalk.cli", "crosswalk.commands", "crosswalk.config", "crosswalk.errors", "crosswalk.otel"}
    public |= {"crosswalk.prices", "crosswalk.stream"}
    public |= {f"crosswalk.wire.{form}" for form in ("chat", "gemini", "messages", "ollama", "responses")}
    assert {name for name in lists if "." in name} == public
    for name in {*lists, *FACES}:
        given: dict[str, Any] = {}
        exec(f"from {name} import *", given)
        assert set(import_module(name).__all__) == given.keys() - {"__builtins__"}


def test_a_module_of_a_package_is_its_attribute_before_anybody_has_imported_it() -> None:
    get, _ = face("crosswalk.agent", {"crosswalk.agent.chat": "ChatAgent"})
    assert get("chat") is import_module("crosswalk.agent.chat")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = import_module(name).nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec(f"from {name} import nothing")
    assert not hasattr(import_module(name), "__wrapped__")


@pytest.mark.sweep
@pytest.mark.parametrize("name", PACKAGES)
def test_importing_a_package_is_light(name: str) -> None:
    """It loads none of its own modules, and nothing of other people's."""
    loaded = loaded_by(f"import {name}")
    assert {module for module in loaded if module.startswith("crosswalk")} <= {
        "crosswalk",
        "crosswalk.lazy",
        "crosswalk.responses",
        name,
    }
    assert len(loaded) <= 60
    assert not sorted(module for module in loaded if module.startswith(("attr", "orjson", "cattrs", "httpx")))


def test_no_package_imports_its_own_modules() -> None:
    """Two threads of which one imports a package and one a module of it would wait for each other. Python
    then hands out half a module. The command line, which is one thread's, may."""
    packages = [each.name for each in walk_packages(crosswalk.__path__, "crosswalk.") if each.ispkg]
    assert len(packages) > 15
    eager = []
    for package in {*packages} - {"crosswalk.cli"}:
        tree = ast.parse(Path(str(import_module(package).__file__)).read_text())
        imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
        eager += [(package, module) for module in imported if str(module).startswith(f"{package}.")]
    assert eager == []


FIRST_USES = (
    "import crosswalk; crosswalk.normalize(BODY)",
    "import crosswalk; crosswalk.normalize(BODY, 'ollama')",
    "import crosswalk; crosswalk.normalize(CHAT)",
    "import crosswalk; crosswalk.to_json(crosswalk.normalize(CHAT, 'openai'))",
    "import crosswalk; crosswalk.to_json(crosswalk.normalize(BODY, 'ollama'))",
    "import crosswalk; list(crosswalk.normalize_stream([BODY], 'ollama'))",
    "import crosswalk; crosswalk.providers()",
    "import crosswalk; crosswalk.registry.mapper('groq')",
    "import crosswalk; crosswalk.json_schema(crosswalk.ChatResponse)",
    "import crosswalk.convert; crosswalk.convert.convert",
    "import crosswalk.plugins; crosswalk.plugins.ProviderInfo",
    "import crosswalk.plugin.registry",
    "import crosswalk_openai",
    "from crosswalk import hookimpl",
    "from crosswalk import *",
    "from crosswalk.errors import ErrorInfo",
    "from crosswalk.service import LLMService",
    "from crosswalk.structured import Schema",
    "from crosswalk.types.message import ChatMessage",
    "from crosswalk.types import ToolCall",
)
AT_ONCE = f"""
import threading
BODY = b'{{"model":"m","message":{{"role":"assistant","content":"Hi!"}},"done":true,"done_reason":"stop"}}'
CHAT = b'{{"object":"chat.completion","model":"m","choices":[{{"index":0,"message":{{"content":"Hi!"}},"finish_reason":"stop"}}]}}'
statements = {FIRST_USES!r}
together, failed = threading.Barrier(len(statements)), []

def use(statement):
    together.wait()
    try:
        exec(statement, {{"BODY": BODY, "CHAT": CHAT}})
    except BaseException as error:
        failed.append((statement, repr(error)))

threads = [threading.Thread(target=use, args=(one,)) for one in statements]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


@pytest.mark.sweep
@pytest.mark.parametrize("_", range(3))
def test_many_threads_may_be_the_first_at_once(_: int) -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_using_a_name_loads_what_it_needs() -> None:
    loaded = loaded_by("from crosswalk.responses import make_id")
    assert "crosswalk.responses.vocabulary" in loaded
    assert not {"crosswalk.responses.accumulator", "crosswalk.responses.items"} & loaded


@pytest.mark.sweep
def test_everything_is_registered_by_whoever_reads() -> None:
    """The type of an item does not depend on other imports."""
    program = (
        "from crosswalk.responses import parse_item\n"
        "item = parse_item({'type': 'file_reader_call', 'file_id': 'x'}, unknown='keep')\n"
        "assert type(item).__name__ == 'ResponseFileReaderToolCall', item\n"
        "from crosswalk.responses import tool_registry\n"
        "assert tool_registry.get('web_search_call').__name__ == 'WebSearchToolCall'"
    )
    assert "crosswalk.responses.server_calls" in loaded_by(program)


# ------------------------------------------------------------------------------------------- any package


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package ``lazy_example`` of two modules, in a folder that is importable."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "lazy_example"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from crosswalk.lazy import face\n"
        "names = {'lazy_example.one': 'first second', 'lazy_example.two': 'third'}\n"
        "__getattr__, __dir__ = face(__name__, names)\n"
    )
    (folder / "one.py").write_text("first, second = 1, 2\n")
    (folder / "two.py").write_text("third = 3\n")
    yield folder
    for name in [name for name in sys.modules if name.startswith("lazy_example")]:
        del sys.modules[name]


def test_names_are_told_without_running_modules(package: Path) -> None:
    (package / "two.py").write_text('raise RuntimeError("it ran")\n')
    example = import_module("lazy_example")
    assert example.__all__ == ["first", "second", "third"]
    assert not {"lazy_example.one", "lazy_example.two"} & set(sys.modules)
    assert example.second == 2
    with pytest.raises(RuntimeError, match="it ran"):
        _ = example.third


def test_a_package_without_source_has_its_names_too(package: Path) -> None:
    """As in a frozen program, where nothing but byte code is there."""
    import py_compile

    for module in ("one", "two"):
        py_compile.compile(str(package / f"{module}.py"), cfile=str(package / f"{module}.pyc"))
        (package / f"{module}.py").unlink()
    example = import_module("lazy_example")
    assert (example.third, example.__all__) == (3, ["first", "second", "third"])


def test_a_module_that_is_not_there_is_said(package: Path) -> None:
    (package / "two.py").unlink()
    with pytest.raises(ModuleNotFoundError, match=r"lazy_example\.two"):
        _ = import_module("lazy_example").third


def test_threads_may_use_it_for_the_first_time_at_once(package: Path) -> None:
    example = import_module("lazy_example")
    start = threading.Barrier(8)
    found: list[tuple[int, ...]] = []

    def use() -> None:
        start.wait()
        found.append((example.first, example.second, example.third))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(1, 2, 3)] * 8


def test_a_name_is_looked_up_once(package: Path) -> None:
    example = import_module("lazy_example")
    found, _ = face("lazy_example", {"lazy_example.one": "first"}, beside=["own"], hidden="first")
    assert found("__all__") == ["own"]
    asked: list[str] = []

    def noting(name: str) -> object:
        asked.append(name)
        return found(name)

    example.__getattr__ = noting  # type: ignore[method-assign]
    assert (example.first, example.first, asked) == (1, 1, ["first"])
    assert "first" in dir(example)


def test_a_pattern_is_compiled_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = re.compile

    def counting(source: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(source)
        return real(source, flags)

    monkeypatch.setattr(re, "compile", counting)
    word = pattern("[a-z]+", re.IGNORECASE)
    assert compiled == []
    assert word.fullmatch("Word") is not None
    assert word.fullmatch("two words") is None
    assert compiled == ["[a-z]+"]
    assert word.sub("x", "two Words") == "x x"
    assert pattern(b"[a-z]").pattern == b"[a-z]"

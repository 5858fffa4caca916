"""Packages have the names of their modules, say so to type checkers, and import nothing before a name is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import crosswalk
from crosswalk.lazy import imported_when_used, lazy, pattern
from loading import loaded_by

PACKAGES = (
    "crosswalk.agent",
    "crosswalk.convert",
    "crosswalk.mapping",
    "crosswalk.responses",
    "crosswalk.responses.accumulator",
    "crosswalk.responses.cited",
    "crosswalk.responses.display",
    "crosswalk.responses.events",
    "crosswalk.responses.pipeline",
    "crosswalk.responses.toolkit",
    "crosswalk.service",
    "crosswalk.stream",
    "crosswalk.structured",
    "crosswalk.types",
    "crosswalk.wire",
)


def stars(package: ModuleType) -> list[str]:
    """The modules whose names *package* has for type checkers."""
    tree = ast.parse(Path(str(package.__file__)).read_text())
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    return [str(node.module) for node in found]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_the_names_of_its_modules_and_each_once(name: str) -> None:
    """For type checkers and for the interpreter alike, and none hides a module of the package."""
    package = import_module(name)
    given = [(module, each) for module in stars(package) for each in import_module(module).__all__]
    names = [each for _, each in given]
    said = [each for each in package.__all__ if not isinstance(getattr(package, each), ModuleType)]
    assert sorted(set(names)) == sorted(names) == said
    for module, each in given:
        assert getattr(package, each) is getattr(import_module(module), each)
    folder = Path(str(package.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    assert not modules & set(names)
    assert set(names) <= set(dir(package))
    for module in stars(package):
        parent, _, own = module.rpartition(".")
        if parent == name:
            assert getattr(package, own) is import_module(module)


def test_a_module_of_a_package_is_its_attribute_before_anybody_has_imported_it() -> None:
    get, _ = lazy("crosswalk.agent", "chat tools")
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
    """It loads no module of its own, and nothing of other people's."""
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
    """Two threads of which one imports a package and one a module of it would wait for each other; Python then hands out half
    a module. The command line, which is one thread's, may."""
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


@pytest.mark.parametrize("name", ["crosswalk.responses", "crosswalk.agent"])
def test_a_star_gives_all_names(name: str) -> None:
    given: dict[str, Any] = {}
    exec(f"from {name} import *", given)
    assert set(import_module(name).__all__) == given.keys() - {"__builtins__"}


@pytest.mark.sweep
def test_everything_is_registered_by_whoever_reads() -> None:
    """What an item is read as does not depend on what else was imported."""
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
        "from crosswalk.lazy import lazy\n__getattr__, __dir__ = lazy(__name__, 'one two')\n"
    )
    (folder / "one.py").write_text('__all__ = [\n    "first",\n    "second",\n]\nfirst, second = 1, 2\n')
    (folder / "two.py").write_text('__all__ = ["third"]\nthird = 3\n')
    yield folder
    for name in [name for name in sys.modules if name.startswith("lazy_example")]:
        del sys.modules[name]


def test_names_are_read_without_running_modules(package: Path) -> None:
    (package / "two.py").write_text('__all__ = ["third"]\nraise RuntimeError("it ran")\n')
    example = import_module("lazy_example")
    assert example.__all__ == ["first", "second", "third"]
    assert not {"lazy_example.one", "lazy_example.two"} & set(sys.modules)
    assert example.second == 2
    with pytest.raises(RuntimeError, match="it ran"):
        _ = example.third


@pytest.mark.parametrize("computed", ["'th' 'ird',", "*('third',),"])
def test_a_module_whose_names_stand_in_no_list_is_imported(package: Path, computed: str) -> None:
    (package / "two.py").write_text(f"__all__ = ({computed})\nthird = 3\n")
    assert import_module("lazy_example").__all__ == ["first", "second", "third"]
    assert "lazy_example.two" in sys.modules


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
    asked: list[str] = []

    def home_of(name: str) -> str:
        asked.append(name)
        return "lazy_example.one"

    example = import_module("lazy_example")
    found = imported_when_used("lazy_example", home_of, lambda: ["first"])
    example.__getattr__, example.__dir__ = found  # type: ignore[method-assign]
    assert (example.first, example.first, asked) == (1, 1, ["first"])
    assert "first" in dir(example)
    assert lazy("lazy_example", "one")[0]("second") == 2


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

"""The examples of plugins that lie outside of Crosswalk: they keep every promise with what the docs tell."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from crosswalk import UnknownEventError, UnknownFinishReasonError, WireTypeError, normalize, registry
from crosswalk.plugins import Recognition, TableDialect
from crosswalk.testing import ProviderConformance, load_captures

EXAMPLES = Path(__file__).parents[1] / "examples"
PROJECT = EXAMPLES / "outside_plugin"
PROJECTS = {"kelp": PROJECT, "tern": EXAMPLES / "plain_plugin"}


@pytest.fixture(autouse=True)
def _both(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The providers, as if their packages were installed."""
    for name, project in PROJECTS.items():
        monkeypatch.syspath_prepend(project / "src")
        registry.register(import_module(f"crosswalk_{name}").plugin, name)
    yield
    for name in PROJECTS:
        registry.unregister(name=name, plugin=sys.modules[f"crosswalk_{name}"].plugin)
        for module in [module for module in sys.modules if module.startswith(f"crosswalk_{name}")]:
            monkeypatch.delitem(sys.modules, module)


class TestKelp(ProviderConformance):
    provider = "kelp"
    captures = "../examples/outside_plugin/tests/captures"
    snapshots = "../examples/outside_plugin/tests/snapshots"
    sample = None


class TestTern(ProviderConformance):
    """It is read by a table alone."""

    provider = "tern"
    captures = "../examples/plain_plugin/tests/captures"
    snapshots = "../examples/plain_plugin/tests/snapshots"
    sample = None


def test_the_plain_plugin_has_no_hook_that_reads() -> None:
    plugin = type(sys.modules["crosswalk_tern"].plugin)
    assert plugin.__mro__[1] is TableDialect
    assert (
        not {"map_delta", "map_usage", "map_finish_reason", "recognizes", "map_error"} & vars(plugin).keys()
    )
    stream = (PROJECTS["tern"] / "tests/captures/look_stream.response.sse").read_bytes()
    assert normalize(stream).metadata.provider_id == "tern"


def test_the_entry_names_keys_of_each_answer_of_which_the_plugin_is_certain() -> None:
    name = "tern"
    project = tomllib.loads((PROJECTS[name] / "pyproject.toml").read_text())
    value = project["project"]["entry-points"]["crosswalk.providers"][name]
    signs = [{*extra.split(".")} for extra in EntryPoint(name, value, "crosswalk.providers").extras]
    mapper = registry.mapper(name)
    certain_events = [
        event
        for capture in load_captures(PROJECTS[name] / "tests/captures")
        for event in capture.events(mapper)
        if mapper.recognizes(event) is Recognition.CERTAIN
    ]
    assert certain_events
    assert all(any(sign <= event.keys() for sign in signs) for event in certain_events)


def test_its_answers_are_known_by_their_greeting() -> None:
    stream = (PROJECT / "tests/captures/dive_stream.response.ndjson").read_bytes()
    assert normalize(stream).metadata.provider_id == "kelp"


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ('{"p":["=","/out/0/say","taken back"]}', UnknownEventError),
        ('{"p":["+","/elsewhere","x"]}', UnknownEventError),
        ('{"p":["+"]}', WireTypeError),
        ('{"drift":1}', UnknownEventError),
        ('{"p":["+","/out/1/say",7]}', WireTypeError),
        ('{"hi":["kelp/2"]}', WireTypeError),
        ('{"out":[{"sing":"la"}]}', UnknownEventError),
        ('{"p":["=","/tide","ebb/odd"]}', UnknownFinishReasonError),
    ],
)
def test_what_it_cannot_read_is_refused(event: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        normalize(f'{{"p":["+","/out/0/say","Hi"]}}\n{event}\n', "kelp")


def test_text_that_belongs_before_what_was_given_out_is_refused() -> None:
    with pytest.raises(UnknownEventError, match="too late") as caught:
        normalize(b'{"p":["+","/out/1/say","Hi"]}\n{"p":["+","/out/0/say","Oh. "]}\n', "kelp")
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"


def test_a_number_in_another_spelling_costs_the_number_and_not_the_answer() -> None:
    bye = b'{"bye":{"spent":{"in":"3","out":"007"},"ms":"soon"}}\n'
    response = normalize(b'{"p":["=","/tide","ebb/done"]}\n' + bye, "kelp")
    assert (response.finish_reason, response.usage.prompt_tokens) == ("stop", 3)
    assert response.metadata.extensions == {"bye": {"spent": {"out": "007"}, "ms": "soon"}}
    assert response.metadata.provenance["metadata.extensions.bye.spent.out"] == "mistyped"
    assert response.metadata.provenance["metadata.extensions.bye.ms"] == "mistyped"


@pytest.mark.parametrize("time", ["once", "2026-01-02T03:06:00", "0001-01-01T00:00:00+23:00"])
def test_a_time_that_is_none_stays_in_the_extensions(time: str) -> None:
    greeting = f'{{"hi":["kelp/2","m","r","{time}"]}}\n{{"p":["=","/tide","ebb/done"]}}\n'
    response = normalize(greeting.encode(), "kelp")
    assert response.metadata.extensions == {"hi": ["kelp/2", time]}
    assert (response.id, response.metadata.provenance["created"]) == ("r", "synthetic")


@pytest.mark.parametrize("name", PROJECTS)
def test_it_imports_nothing_but_what_crosswalk_exports(name: str) -> None:
    project = tomllib.loads((PROJECTS[name] / "pyproject.toml").read_text())["project"]
    (target,) = project["entry-points"]["crosswalk.providers"].values()
    assert target.partition(" ")[0] == f"crosswalk_{name}:plugin"
    for module in (PROJECTS[name] / f"src/crosswalk_{name}").glob("*.py"):
        assert set(re.findall(r"crosswalk[\w.]*(?= import)", module.read_text())) == {"crosswalk.plugins"}


def test_they_are_built_by_two_backends() -> None:
    texts = [(project / "pyproject.toml").read_text() for project in PROJECTS.values()]
    assert len({tomllib.loads(text)["build-system"]["build-backend"] for text in texts}) == 2

"""The example of a plugin that lies outside of Crosswalk: it keeps every promise with what the docs tell."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswalk import UnknownEventError, WireTypeError, normalize, registry
from crosswalk.testing import ProviderConformance

PROJECT = Path(__file__).parents[1] / "examples/outside_plugin"


@pytest.fixture(autouse=True)
def _kelp(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The provider, as if its package were installed."""
    monkeypatch.syspath_prepend(PROJECT / "src")
    from crosswalk_kelp import plugin  # type: ignore[import-not-found]  # on the path just now

    registry.register(plugin, "kelp")
    yield
    registry.unregister(plugin, "kelp")
    for name in [name for name in sys.modules if name.startswith("crosswalk_kelp")]:
        monkeypatch.delitem(sys.modules, name)


class TestKelp(ProviderConformance):
    provider = "kelp"
    captures = "../examples/outside_plugin/tests/captures"
    snapshots = "../examples/outside_plugin/tests/snapshots"
    sample = None
    exceptions = {
        "counts are the provider's: bye.spent.in": "a part of what is added up stays as it was sent"
    }


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
        ('{"bye":{"spent":{"out":"007"}}}', WireTypeError),
        ('{"bye":{"ms":"soon"}}', WireTypeError),
    ],
)
def test_what_it_cannot_read_is_refused(event: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        normalize(f'{{"p":["+","/out/0/say","Hi"]}}\n{event}\n', "kelp")


def test_a_time_that_is_none_stays_in_the_extensions() -> None:
    greeting = b'{"hi":["kelp/2","m","r","once"]}\n{"p":["=","/tide","ebb/done"]}\n'
    assert normalize(greeting, "kelp").metadata.extensions == {"hi": ["kelp/2", "once"]}


def test_it_imports_nothing_but_what_crosswalk_exports() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["crosswalk.providers"] == {"kelp": "crosswalk_kelp:plugin"}
    for module in (PROJECT / "src/crosswalk_kelp").glob("*.py"):
        assert "from crosswalk." not in module.read_text(), module

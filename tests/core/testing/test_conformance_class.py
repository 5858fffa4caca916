"""The report of a failing snapshot test, and the captures that it counts as unstated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from crosswalk.plugin.registry import registry
from crosswalk.testing import ProviderConformance, load_capture, normalized
from planted import named
from planted.recordings import NAMED


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    registry.register(named.plugin, "planted-named")
    yield
    registry.unregister(named.plugin, "planted-named")


class Pinned:
    """A snapshot that is always, or never, the same. It keeps what it was compared with, which syrupy would write."""

    def __init__(self, *, is_same: bool = False) -> None:
        self.is_same = is_same
        self.written: list[Any] = []

    def use_extension(self, _: object) -> Callable[..., Any]:
        return lambda name: self

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        self.written.append(other)
        return self.is_same


def failure(
    tmp_path: Path, stored: Any, *, says: Any = None, pinned: Pinned | None = None
) -> tuple[str, dict[str, object]]:
    """The test's report of the first recording, and the properties that it records."""

    class Planted(ProviderConformance):
        provider = "planted-named"
        captures = str(tmp_path)
        snapshots = str(tmp_path / "snapshots")
        sample = 1

    file = tmp_path / "talk.response.json"
    file.write_bytes(NAMED[0].capture.body)
    if says is not None:
        (tmp_path / "talk.says.json").write_bytes(orjson.dumps(says))
    if stored is not None:
        (tmp_path / "snapshots/planted-named").mkdir(parents=True)
        (tmp_path / "snapshots/planted-named/talk.json").write_bytes(orjson.dumps(stored))
    properties: dict[str, object] = {}
    with pytest.raises(pytest.fail.Exception) as failed:
        snapshot: Any = pinned or Pinned()
        run: Any = SimpleNamespace(config=SimpleNamespace(getoption=lambda _: None))
        Planted().test_snapshot(load_capture(file), snapshot, run, properties.__setitem__)
    return "\n".join(map(str.strip, str(failed.value).splitlines())), properties


def now() -> Any:
    return normalized(registry.mapper("planted-named"), NAMED[0].capture)


def test_a_change_is_told_as_diff_tells_it(tmp_path: Path) -> None:
    before = now()
    before["response"]["usage"]["cached_tokens"] = 5
    said, properties = failure(tmp_path, before)
    assert "usage.cached_tokens: 5 -> 6\nread this, then run pytest --snapshot-update" in said
    assert list(properties) == ["crosswalk_changed"]


def test_of_many_changes_the_first_are_told(tmp_path: Path) -> None:
    before = now()
    before["response"]["metadata"]["extensions"] |= {f"key_{number}": number for number in range(25)}
    said, _ = failure(tmp_path, before)
    assert "key_19: 19 -> absent\nand 5 more\nread this" in said


def test_a_capture_without_a_snapshot_is_told(tmp_path: Path) -> None:
    said, properties = failure(tmp_path, None)
    assert "no snapshot yet\nread this" in said
    assert properties == {}


def test_what_a_statement_contradicts_is_not_written(tmp_path: Path) -> None:
    """Also where syrupy would accept it. What is stored is compared with itself, so that it is not removed."""
    before, updating = now(), Pinned(is_same=True)
    before["response"]["usage"]["cached_tokens"] = 5
    said, properties = failure(tmp_path, before, says={"usage": {"cached_tokens": 5}}, pinned=updating)
    assert "usage.cached_tokens: 5 -> 6\nP4 talk, usage.cached_tokens: stated as 5, and read as 6" in said
    assert said.endswith("mend these first: no snapshot is written over them")
    assert (updating.written, properties) == ([before], {})


def test_a_first_snapshot_is_not_written_against_a_statement(tmp_path: Path) -> None:
    updating = Pinned(is_same=True)
    said, _ = failure(tmp_path, None, says={"text": "no"}, pinned=updating)
    assert said.startswith("no snapshot yet\nP4 talk, text: stated as")
    assert updating.written == []


def test_what_contradicts_the_other_form_is_not_written(tmp_path: Path) -> None:
    """That body and stream agree is a promise, too."""
    (tmp_path / "talk_stream.response.json").write_bytes(NAMED[0].capture.body.replace(b"There", b"Where"))
    (tmp_path / "MANIFEST.jsonl").write_bytes(
        b'{"file": "talk_stream.response.json", "stream": true, "pair": "talk"}\n'
    )
    updating = Pinned(is_same=True)
    said, _ = failure(tmp_path, None, pinned=updating)
    assert "P2 talk ~ talk_stream: body and stream disagree in message.content" in said
    assert updating.written == []

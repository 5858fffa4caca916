"""The report of a failing snapshot test, and the captures that it counts as unstated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
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


class Other:
    """A snapshot that is never the same."""

    def use_extension(self, _: object) -> Callable[..., Any]:
        return lambda name: Other()

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


def failure(tmp_path: Path, stored: Any) -> tuple[str, dict[str, object]]:
    """The test's report of the first recording, and the properties that it records."""

    class Planted(ProviderConformance):
        provider = "planted-named"
        snapshots = str(tmp_path)

    file = tmp_path / "talk.response.json"
    file.write_bytes(NAMED[0].capture.body)
    if stored is not None:
        (tmp_path / "planted-named").mkdir()
        (tmp_path / "planted-named/talk.json").write_bytes(orjson.dumps(stored))
    properties: dict[str, object] = {}
    snapshot: Any = Other()
    with pytest.raises(pytest.fail.Exception) as failed:
        Planted().test_snapshot(load_capture(file), snapshot, properties.__setitem__)
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

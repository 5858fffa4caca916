"""Captures: recorded exchanges as files."""

from __future__ import annotations

from pathlib import Path

import pytest

import crosswalk.testing
from crosswalk import ConfigurationError
from crosswalk.testing import load_captures, pairs
from crosswalk.testing.perturbation import changed_paths, leaves, show_path


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    """The name tells what it is: its form, its pair; requests and notes are no captures."""
    for name in (
        "a.response.json",
        "a_stream.response.sse",
        "b.ndjson",
        "c.txt",
        "a.request.json",
        "note.md",
    ):
        (tmp_path / name).write_bytes(b'{"x": 1}')
    found = load_captures(tmp_path)
    assert [(c.case, c.stream, c.pair, c.status) for c in found] == [
        ("a", False, "a", 200),
        ("a_stream", True, "a", 200),
        ("b", True, "b", 200),
        ("c", False, "c", 200),
    ]
    assert [(whole.case, streamed.case) for whole, streamed in pairs(found)] == [("a", "a_stream")]
    assert [str(c) for c in found] == ["a", "a_stream", "b", "c"]


def test_a_manifest_in_the_folder_or_above_it(tmp_path: Path) -> None:
    """It says what the name does not; answers of other paths can be left out."""
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "x.response.json").write_bytes(b'{"error": "no"}')
    (folder / "y.response.json").write_bytes(b"{}")
    (tmp_path / "MANIFEST.jsonl").write_text(
        '{"file": "server/x.response.json", "status": 404, "path": "/chat", "pair": "p", "complete": false, '
        '"request": "server/x.json"}\n'
        '{"file": "server/y.response.json", "path": "/models"}\n'
    )
    (found,) = load_captures(folder, paths=["/chat"])
    assert (found.status, found.pair, found.complete, found.path) == (404, "p", False, "/chat")
    assert found.events() == [{"error": "no"}]


def test_a_note_beside_a_capture(tmp_path: Path) -> None:
    """CASE.meta.json is read where no manifest names the file."""
    (tmp_path / "x.response.txt").write_bytes(b"gone")
    (tmp_path / "x.meta.json").write_bytes(b'{"status": 410, "stream": false}')
    (found,) = load_captures(tmp_path)
    assert (found.status, found.stream, found.is_json) == (410, False, False)


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    """A missing folder and a broken manifest are named."""
    with pytest.raises(ConfigurationError, match="no folder of captures"):
        load_captures(tmp_path / "none")
    (tmp_path / "MANIFEST.jsonl").write_text("[]\n")
    with pytest.raises(ConfigurationError, match="MANIFEST.jsonl:1"):
        load_captures(tmp_path)


def test_the_kit_is_loaded_when_it_is_asked_for() -> None:
    """It needs pytest and syrupy; the checks do not."""
    assert crosswalk.testing.ProviderConformance.__name__ == "ProviderConformance"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = crosswalk.testing.Nothing


def test_leaves_and_paths() -> None:
    """Every scalar is a leaf; paths are shown as people write them."""
    events = [{"a": [{"b": 1}, None], "c": {}, "d": []}]
    assert [str(leaf) for leaf in leaves(events)] == ["event 1, a[0].b", "event 1, a[1]"]
    assert show_path(("a", 0, "b"), items=False) == "a[].b"
    before, after = {"a": [1, {"b": True}], "c": 1}, {"a": [1, {"b": 1}, 3]}
    assert [show_path(path) for path in changed_paths(before, after)] == ["a[1].b", "a[2]", "c"]

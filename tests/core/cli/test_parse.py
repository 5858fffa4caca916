"""``crosswalk parse``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from .conftest import Done, Terminal

Run = Callable[..., Done]
Give = Callable[[bytes], None]

GOOD = '{"answer": "A", "items_shown": 3}'
SCHEMA = """
import attrs
from crosswalk.structured import Schema, SchemaVersions, StructuredParser

@attrs.frozen
class Point:
    x: int

@attrs.frozen
class Complex:
    x: float = attrs.field(converter=complex)

class Holder:
    schema = Schema(Point)

parser = StructuredParser(Point)
versions = SchemaVersions().register("1.0", Point)
nothing = 5
"""


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    """A module of the user's in the working directory."""
    (tmp_path / "shapes_of_a_user.py").write_text(SCHEMA)
    return "shapes_of_a_user"


def test_value_stage_and_reason_are_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text(f"Sure:\n```json\n{GOOD[:-1]},}}\n```")
    done = run("parse", "answer.txt")
    assert (done.status, done.err) == (0, "")
    report = orjson.loads(done.out)
    assert list(report) == ["stage", "reason", "partial", "schema_version", "violations", "value"]
    assert (report["stage"], report["reason"], report["partial"]) == ("repair", "success", False)
    assert report["value"]["items_shown"] == 3


def test_a_failure_is_status_1(run: Run, stdin: Give) -> None:
    stdin(b'{"answer": 1, "items_shown": 3}')
    done = run("parse")
    assert done.status == 1
    report = orjson.loads(done.out)
    assert (report["reason"], report["value"]) == ("schema_type_error", None)
    assert report["violations"] == ["expected string, got number @ $.answer"]


def test_the_value_alone(run: Run, stdin: Give) -> None:
    stdin(b'{"answer": "A", "items_shown": 3,')
    done = run("parse", "--value", "--partial", "close", "-")
    assert (done.status, orjson.loads(done.out)["answer"]) == (0, "A")
    assert done.err == "repaired_json (partial)\n"
    stdin(b'{"items_shown": -1, "answer": ""}')
    done = run("parse", "--value")
    assert (done.status, done.out) == (1, "")
    assert done.err == "must be >= 0 @ $.items_shown\nparse_failed: invariant_violation\n"


def test_a_failure_without_violations_says_what_is_wrong(run: Run, stdin: Give) -> None:
    stdin(b"I cannot say.")
    done = run("parse")
    assert (done.status, done.err) == (1, "extraction_failed: the answer contains no JSON\n")
    assert orjson.loads(done.out)["reason"] == "extraction_failed"


def test_version_2_has_a_name(run: Run, stdin: Give) -> None:
    stdin(GOOD.encode())
    assert orjson.loads(run("parse", "--schema", "StructuredResponseV2").out)["value"]["response"] == "A"
    stdin(GOOD.encode())
    assert orjson.loads(run("parse", "--schema", "StructuredResponseV1_1").out)["schema_version"] == "1.0"


def test_a_value_that_is_no_json_fails(run: Run, stdin: Give, shapes: str) -> None:
    stdin(b'{"x": 1}')
    done = run("parse", "--schema", f"{shapes}:Complex")
    assert (done.status, done.out) == (1, "")
    assert "the value cannot be written: " in done.err


def test_a_module_that_wants_to_exit_does_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(0)\n")
    done = run("parse", "--schema", "leaves_at_once:X", "-")
    assert (done.status, done.out) == (2, "")
    assert "SystemExit" in done.err


@pytest.mark.parametrize("name", ["Point", "Holder.schema", "parser", "versions"])
def test_any_schema_of_the_user_s(run: Run, stdin: Give, shapes: str, name: str) -> None:
    stdin(b"{'x': 1}")
    done = run("parse", "--schema", f"{shapes}:{name}")
    assert (done.status, orjson.loads(done.out)["value"]) == (0, {"x": 1})


POINT = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'


@pytest.mark.parametrize(
    "schema", [POINT, f'{{"type": "json_schema", "json_schema": {{"name": "point", "schema": {POINT}}}}}']
)
def test_a_schema_in_a_file(run: Run, stdin: Give, tmp_path: Path, schema: str) -> None:
    (tmp_path / "point.json").write_text(schema)
    stdin(b"{'x': 1}")
    done = run("parse", "--schema", "point.json")
    assert (done.status, orjson.loads(done.out)["value"]) == (0, {"x": 1})
    stdin(b"{'x': '1'}")
    assert run("parse", "--schema", "point.json").status == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "Nothing",
            "no schema 'Nothing': there are StructuredResponse, StructuredResponseV1_1, StructuredResponseV2, any class",
        ),
        ("shapes_of_a_user:Nothing", "AttributeError"),
        ("shapes_of_a_user:nothing", "5: an answer cannot hold 5"),
        ("shapes_of_a_user:Holder", "Holder: an answer cannot hold"),
        ("no_such_module:X", "ModuleNotFoundError"),
        (":X", "ValueError"),
        ("nowhere.json", "nowhere.json: No such file or directory"),
        ("broken.json", "broken.json: not JSON"),
        ("list.json", "list.json: a JSON Schema is an object, not array"),
        ("typed.json", "'typo' is not a type"),
    ],
)
@pytest.mark.usefixtures("shapes")
def test_a_wrong_schema_is_status_2(run: Run, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "typed.json").write_text('{"type": "typo"}')
    done = run("parse", "--schema", name, "-")
    assert (done.status, done.out) == (2, "")
    assert why in done.err


def test_a_file_that_cannot_be_read_is_status_2(run: Run) -> None:
    assert run("parse", "nowhere.txt") == (2, "", "crosswalk parse: nowhere.txt: No such file or directory\n")


def test_bytes_that_are_no_text_fail(run: Run, stdin: Give) -> None:
    stdin(b'{"answer": "\xff"}')
    assert run("parse") == (1, "", "-: not UTF-8 at byte 12\n")


def test_a_terminal_is_told_what_is_awaited(run: Run, terminal: Callable[[str], Terminal]) -> None:
    terminal("stdin")
    assert "end it with Ctrl-D" in run("parse").err

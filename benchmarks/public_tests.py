"""Runs the parser on the public tests of json_repair, jsonrepair and BAML, and shows each difference with its reason.

Run it on your own checkouts: ``python -m benchmarks.public_tests FOLDER...``. This project contains no part of them. A
case counts if the expected result is an object or array. A JSON Schema of its keys and types is made of that result,
so the parser has the same information as a user with a class.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from crosswalk.structured import StructuredParser

_JS_CALL = re.compile(
    r"jsonrepair\((?P<given>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")\)\)\s*\.toBe\(\s*(?P<wanted>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
)
_RUST_CASE = re.compile(
    r'r#*"(?P<given>(?:(?!"#).)*?)"#+,\s*[^;]*?json!\((?P<wanted>[{\[].*?[}\]])\)\s*\)', re.DOTALL
)
_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


def cases_in(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the texts in *file*, each with the result that its tests expect."""
    source = file.read_text(errors="replace")
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Compare)
                and isinstance(node.left, ast.Call)
                and len(node.comparators) == 1
            ):
                call, wanted = node.left, node.comparators[0]
                name = getattr(call.func, "id", getattr(call.func, "attr", ""))
                if name in ("repair_json", "loads") and call.args and isinstance(call.args[0], ast.Constant):
                    yield from _case(call.args[0].value, wanted)
    elif file.suffix in (".ts", ".js"):
        for found in _JS_CALL.finditer(source):
            yield from _case(_js_text(found["given"]), ast.Constant(_js_text(found["wanted"])))
    elif file.suffix == ".rs":
        for found in _RUST_CASE.finditer(source):
            yield from _case(found["given"], ast.Constant(found["wanted"]))


def _case(given: Any, wanted: ast.expr) -> Iterator[tuple[str, Any]]:
    try:
        value = ast.literal_eval(wanted)
        value = orjson.loads(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError):
        return
    if isinstance(given, str) and isinstance(value, dict | list):
        yield given, value


def _js_text(literal: str) -> str:
    try:
        return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return literal[1:-1]


def schema_of(value: Any) -> dict[str, Any]:
    """Return a JSON Schema that *value* fulfils, with its keys and types."""
    schema: dict[str, Any] = {"type": _TYPES[type(value)]}
    if isinstance(value, dict):
        schema |= {"properties": {key: schema_of(each) for key, each in value.items()}, "required": [*value]}
    if isinstance(value, list) and value:
        kinds = list({orjson.dumps(kind): kind for kind in map(schema_of, value)}.values())
        schema["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return schema


def main(folders: list[str]) -> None:
    """Print the number of results that agree for each folder, and each difference."""
    for folder in folders:
        counts: Counter[str] = Counter()
        differences = []
        for file in sorted(Path(folder).rglob("*")):
            if file.suffix in (".py", ".ts", ".js", ".rs") and "test" in str(file).lower():
                for text, wanted in cases_in(file):
                    result = StructuredParser(schema_of(wanted)).parse(text)
                    same = result.value == wanted
                    outcome = "same" if same else "refused" if result.value is None else "another value"
                    counts[outcome] += 1
                    if not same:
                        why = result.reason.value if result.value is None else repr(result.value)
                        differences.append(f"{outcome:14} {why:22} {text!r} -> {wanted!r}")
        print(f"\n{folder}: {sum(counts.values())} cases: {dict(counts)}")
        print("\n".join(line[:240] for line in sorted(differences)))


if __name__ == "__main__":
    main(sys.argv[1:])

"""What the parser makes of the public tests of json_repair, jsonrepair and BAML, with every difference and its reason.

``python -m benchmarks.public_tests`` fetches the three with git and skips those that it cannot reach;
``python -m benchmarks.public_tests FOLDER...`` reads checkouts of yours. Nothing of them is part of this project. A case
counts where the expected result is an object or array. A JSON Schema of its keys and types is made of that result, so the
parser knows as much as a user who has a class. A null may be left out.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from crosswalk.structured import ParseResult, StructuredParser

_JS_CALL = re.compile(
    r"jsonrepair\((?P<given>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")\)\)\s*\.toBe\(\s*(?P<wanted>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
)
_RUST_CASE = re.compile(
    r'test_deserializer!\(\s*\w+,\s*[^,]+,\s*r(?P<hashes>#+)"(?P<given>(?:(?!"#).)*)"(?P=hashes),'
    r"[^;]*?,\s*(?P<wanted>[{\[].*?[}\]]),?\s*\);",
    re.DOTALL,
)
_SOURCES = {
    "https://github.com/BoundaryML/baml": "engine/baml-lib/jsonish/src/tests",
    "https://github.com/mangiucugna/json_repair": "tests",
    "https://github.com/josdejong/jsonrepair": "src",
}
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
    """The texts in *file*, each with what its tests expect of it."""
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
            plain = re.sub(r",(\s*[}\]])", r"\1", found["wanted"])  # Rust allows a comma at the end
            yield from _case(found["given"], ast.Constant(plain))


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
    """A JSON Schema that *value* keeps, with its keys and types."""
    schema: dict[str, Any] = {"type": _TYPES[type(value)]}
    if isinstance(value, dict):
        properties = {key: schema_of(each) for key, each in value.items()}
        required = [key for key, each in value.items() if each is not None]
        schema |= {"properties": properties, "required": required}
    if isinstance(value, list) and value:
        kinds = list({orjson.dumps(kind): kind for kind in map(schema_of, value)}.values())
        schema["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return schema


def without_null(value: Any) -> Any:
    """*value* less the keys that are null: a test may expect them where the text has none."""
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def compare(folder: Path) -> None:
    """Print how often the results agree for the tests in *folder*, and each difference."""
    counts: Counter[str] = Counter()
    differences = []
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".py", ".ts", ".js", ".rs") and "test" in str(file).lower():
            for text, wanted in cases_in(file):
                result: ParseResult[Any] = StructuredParser(schema_of(wanted)).parse(text)
                same = without_null(result.value) == without_null(wanted)
                outcome = "same" if same else "refused" if result.value is None else "another value"
                counts[outcome] += 1
                if not same:
                    why = result.reason.value if result.value is None else repr(result.value)
                    differences.append(f"{outcome:14} {why:22} {text!r} -> {wanted!r}")
    print(f"{sum(counts.values())} cases: {dict(counts)}")
    print("\n".join(line[:240] for line in sorted(differences)))


def fetch(url: str, path: str, into: Path) -> bool:
    """Fetch the folder *path* of the repository at *url*; false where that fails."""
    options = ["--quiet", "--depth=1", "--filter=blob:none", "--sparse"]
    commands = [
        ["git", "clone", *options, url, str(into)],
        ["git", "-C", str(into), "sparse-checkout", "set", path],
    ]
    try:
        return all(
            subprocess.run(each, capture_output=True, timeout=120).returncode == 0 for each in commands
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def main(folders: list[str]) -> None:
    """Compare the tests in *folders*, or else those of the public repositories."""
    for folder in folders:
        print(f"\n{folder}")
        compare(Path(folder))
    for url, path in () if folders else _SOURCES.items():
        with tempfile.TemporaryDirectory() as into:
            print(f"\n{url}")
            checkout = Path(into) / "checkout"
            if fetch(url, path, checkout):
                compare(checkout / path)
            else:
                print("skipped: it cannot be fetched from here")


if __name__ == "__main__":
    main(sys.argv[1:])

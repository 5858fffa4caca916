"""The results of each library on the corpus of answers (``tests/answer_corpus.py``): right, refused, or wrong.

The same strict schema reads every library's result. A value that the schema refuses is a refusal. The peers are
optional, in the extra ``bench``.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
from tests.answer_corpus import SCHEMAS, Answer, load_corpus

from benchmarks.measure import print_table
from crosswalk.structured import Schema, StructuredParser

COLUMNS = (
    "right value",
    "right refusal",
    "useful refused",
    "WRONG value",
    "taken back in prose",
    "raised other",
)


def _instructor() -> Callable[[str], Any]:
    extract = importlib.import_module("instructor.utils").extract_json_from_codeblock
    return lambda text: orjson.loads(extract(text))


def _langchain() -> Callable[[str], Any]:
    return importlib.import_module("langchain_core.output_parsers").JsonOutputParser().parse  # type: ignore[no-any-return]


def _json_repair() -> Callable[[str], Any]:
    return importlib.import_module("json_repair").loads  # type: ignore[no-any-return]


PEERS: dict[str, Callable[[], Callable[[str], Any]]] = {
    "json_repair": _json_repair,
    "langchain-core JsonOutputParser": _langchain,
    "instructor (JSON in Markdown)": _instructor,
    "orjson": lambda: orjson.loads,
}


def outcome(answer: Answer, value: Any) -> str:
    """Return the column for *value*, which is ``None`` if there is none."""
    if "taken_back" in answer.want:
        return "right refusal" if value is None else "taken back in prose"
    if "refused" in answer.want:
        return "right refusal" if value is None else "WRONG value"
    if value is None:
        return "useful refused"
    wanted = answer.want.get("value", answer.want.get("unread"))
    return "right value" if value == SCHEMAS[answer.schema].read(wanted)[0] else "WRONG value"


def ours(corpus: list[Answer]) -> Counter[str]:
    """Count the outcomes of our own parser."""
    parsers: dict[str, StructuredParser[Any]] = {
        name: StructuredParser(each) for name, each in SCHEMAS.items()
    }
    return Counter(outcome(each, parsers[each.schema].parse(each.text).value) for each in corpus)


def theirs(corpus: list[Answer], parse: Callable[[str], Any]) -> Counter[str]:
    """Count the outcomes of a function from a text to data."""
    found: Counter[str] = Counter()
    for answer in corpus:
        schema: Schema[Any] | Any = SCHEMAS[answer.schema]
        value = None
        try:
            value = schema.read(parse(answer.text))[0]
        except ValueError:
            pass
        except Exception:  # any exception counts as a refusal
            found["raised other"] += 1
        found[outcome(answer, value)] += 1
    return found


def main(rounds: int) -> None:
    """Print the table."""
    corpus = load_corpus()
    rows = [("crosswalk", *(str(ours(corpus)[column]) for column in COLUMNS))]
    for name, load in PEERS.items():
        try:
            found = theirs(corpus, load())
        except ImportError:
            rows.append((name, *["not installed"] * len(COLUMNS)))
        else:
            rows.append((name, *(str(found[column]) for column in COLUMNS)))
    print_table(f"answers: {len(corpus):,} texts of models", ("", *COLUMNS), rows)


if __name__ == "__main__":
    main(1)

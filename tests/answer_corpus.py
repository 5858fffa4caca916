"""Answers of models with the outcome that each should have; the outcomes were written before the code was run.

A line of ``core/structured/corpus.jsonl``: an id, the schema, the text, and what is wanted: a ``value`` as JSON, or
``refused`` with the reason, ``null`` where any will do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs

from crosswalk.structured import RESPONSE_VERSIONS, Invariant, Schema, SchemaVersions

__all__ = ["CORPUS", "SCHEMAS", "Answer", "load_corpus"]

CORPUS = Path(__file__).parent / "core" / "structured" / "corpus.jsonl"


@attrs.frozen
class Answer:
    """One answer.

    Attributes:
        id: what kind of text it is, and its number.
        schema: the key of its schema in :data:`SCHEMAS`.
        text: what the model wrote.
        want: ``{"value": …}`` or ``{"refused": reason}``.
    """

    id: str
    schema: str
    text: str
    want: dict[str, Any]


@attrs.frozen
class Order:
    item: str
    count: int
    note: str | None = None


@attrs.frozen
class Amount:
    amount: float
    currency: str


@attrs.frozen
class Tags:
    items: list[str]


@attrs.frozen
class Numbers:
    values: list[float]


@attrs.frozen
class Flag:
    ok: bool
    reason: str | None = None


@attrs.frozen
class Code:
    language: str
    code: str


@attrs.frozen
class Call:
    name: str
    arguments: dict[str, Any]


@attrs.frozen
class Person:
    name: str
    age: int | None = None


@attrs.frozen
class People:
    people: list[Person]


SCHEMAS: dict[str, Schema[Any] | SchemaVersions[Any]] = {
    "order": Schema(Order, [Invariant("'count' must be >= 0", lambda order: order.count >= 0)]),
    "amount": Schema(Amount),
    "tags": Schema(Tags),
    "numbers": Schema(Numbers),
    "flag": Schema(Flag),
    "code": Schema(Code),
    "call": Schema(Call),
    "people": Schema(People),
    "answer": RESPONSE_VERSIONS,
}


def load_corpus() -> list[Answer]:
    """All of them."""
    return [Answer(**json.loads(line)) for line in CORPUS.read_text().splitlines()]

"""The types that the answers of :mod:`answer_table` are read as."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple, TypedDict

import attrs

__all__ = [
    "Animal", "Bill", "Bird", "Book", "Call", "Colour", "Doc", "Fish", "Loose", "Meeting", "Mood", "Movie", "Note", "Owner",
    "Point", "Settings", "Shelf", "Tags",
]  # fmt: skip


@attrs.frozen
class Book:
    title: str
    pages: int
    isbn: str | None = None


@attrs.frozen
class Shelf:
    books: list[Book]


@attrs.frozen
class Note:
    body: str


@attrs.frozen
class Tags:
    items: list[str]


@attrs.frozen
class Settings:
    dark: bool = False
    size: int = 12


@attrs.frozen
class Mood:
    mood: Literal["good", "bad"]
    why: str | None = None


@attrs.frozen
class Fish:
    name: str
    fins: int | None = None


@attrs.frozen
class Bird:
    name: str
    wings: int | None = None


@attrs.frozen
class Call:
    name: str
    arguments: dict[str, Any]


@attrs.frozen
class Owner:
    pet: Fish | Bird


@attrs.frozen
class Doc:
    page_count: int
    author_name: str | None = None
    résumé: str | None = None


@attrs.frozen
class Bill:
    sum: Decimal


@attrs.frozen
class Meeting:
    start: datetime


@attrs.frozen
class Loose:
    data: Any


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Animal:
    name: str
    legs: int = 4


class Point(NamedTuple):
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str
    year: int

"""Twelve types as users write them, each with a valid answer and one that breaks a limit that a server may not check."""

from __future__ import annotations

import dataclasses
import enum
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, HttpUrl

__all__ = ["TYPES"]


class Vitals(BaseModel):
    """Measured at the bedside."""

    age: int = Field(ge=0, le=150, description="In years.")
    saturation: float = Field(gt=0, lt=1)
    doses: int = Field(multiple_of=2)
    pulse: int = Field(gt=20, lt=300)
    pain: int | None = Field(None, ge=0, le=10)


class Listing(BaseModel):
    """An offer."""

    code: str = Field(min_length=2, max_length=8)
    tags: list[str] = Field(min_length=2, max_length=5)
    photos: list[HttpUrl] = Field(default_factory=list, max_length=3)


class Parcel(BaseModel):
    """A parcel."""

    model_config = ConfigDict(regex_engine="python-re")
    zip_code: str = Field(pattern=r"^\d{5}$")
    secret: str = Field(pattern=r"^(?=.*[0-9])[a-z0-9]{8,}$")
    word: str = Field(pattern="ab+c", max_length=20)


class Booking(BaseModel):
    """A booking."""

    made: datetime
    day: date
    at: time
    id: UUID
    page: HttpUrl


class Folder(BaseModel):
    """A folder with folders in it."""

    name: str = Field(min_length=1)
    size: int = Field(ge=0)
    folders: list[Folder]


@dataclasses.dataclass
class Place:
    """A place."""

    lat: Annotated[float, Field(ge=-90, le=90)]
    lon: Annotated[float, Field(ge=-180, le=180)]


@dataclasses.dataclass
class Meeting:
    """A meeting."""

    room: int | str
    where: Place | list[str] | None = None


class Card(BaseModel):
    """Paid by card."""

    kind: Literal["card"]
    last: str = Field(pattern="^[0-9]{4}$")


class Transfer(BaseModel):
    """Paid by transfer."""

    kind: Literal["transfer"]
    iban: str = Field(min_length=15, max_length=34)


class Payment(BaseModel):
    """A payment."""

    by: Card | Transfer = Field(discriminator="kind")
    cents: int = Field(gt=0)


class Größe(BaseModel):
    """A table of sizes."""

    by_name: dict[str, int]
    more: dict[str, Any] = Field(default_factory=dict)
    note: str = Field("", max_length=9)


class Track(BaseModel):
    """A track on a map."""

    start: tuple[float, float]
    label: tuple[str, int]


class Level(enum.Enum):
    """How bad it is."""

    LOW = "low"
    HIGH = "high"


class Triage(BaseModel):
    """What to do with a ticket."""

    level: Level
    queue: Literal["mail", "phone"]
    tries: Literal[1, 2, 3]
    version: Literal["v1"]
    mixed: Literal["auto", 0, True]
    share: float = Field(ge=0, le=1)


class Settings(BaseModel):
    """What a user has set."""

    theme: str | None = None
    volume: int = Field(5, ge=0, le=10)
    language: Literal["de", "en"] = "en"


class Invoice(BaseModel):
    """An invoice."""

    total: Decimal = Field(ge=0, decimal_places=2, max_digits=9)
    discount: Decimal | None = None


TYPES: dict[str, tuple[Any, str, str]] = {
    "bounds": (
        Vitals,
        '{"age": 40, "saturation": 0.97, "doses": 4, "pulse": 70, "pain": null}',
        '{"age": 40, "saturation": 0.97, "doses": 3, "pulse": 70, "pain": null}',
    ),
    "lengths": (
        Listing,
        '{"code": "ab1", "tags": ["a", "b"], "photos": ["https://a.example/1.png"]}',
        '{"code": "ab1", "tags": ["a"], "photos": []}',
    ),
    "patterns": (
        Parcel,
        '{"zip_code": "10115", "secret": "abcdefg1", "word": "abbc"}',
        '{"zip_code": "10115", "secret": "abcdefgh", "word": "abbc"}',
    ),
    "formats": (
        Booking,
        '{"made": "2026-11-29T10:00:00Z", "day": "2026-11-30", "at": "10:00:00Z",'
        ' "id": "7b1a0e4e-6b5c-4bd6-9f3e-1b0d6f5f7a11", "page": "https://a.example/"}',
        '{"made": "2026-11-29T10:00:00Z", "day": "2026-11-30", "at": "10:00:00Z",'
        ' "id": "7b1a0e4e-6b5c-4bd6-9f3e-1b0d6f5f7a11", "page": "none"}',
    ),
    "recursion": (
        Folder,
        '{"name": "a", "size": 3, "folders": [{"name": "b", "size": 1, "folders": []}]}',
        '{"name": "a", "size": 3, "folders": [{"name": "", "size": 1, "folders": []}]}',
    ),
    "unions": (
        Meeting,
        '{"room": "A1", "where": {"lat": 52.5, "lon": 13.4}}',
        '{"room": "A1", "where": {"lat": 152.5, "lon": 13.4}}',
    ),
    "discriminated": (
        Payment,
        '{"by": {"kind": "card", "last": "1234"}, "cents": 5}',
        '{"by": {"kind": "card", "last": "12345"}, "cents": 5}',
    ),
    "maps": (
        Größe,
        '{"by_name": {"S": 36, "M": 38}, "more": {"cut": ["slim"]}, "note": ""}',
        '{"by_name": {"S": 36, "M": 38}, "more": {}, "note": "too long a note"}',
    ),
    "tuples": (
        Track,
        '{"start": [52.5, 13.4], "label": ["home", 1]}',
        '{"start": [52.5, 13.4], "label": [1, "home"]}',
    ),
    "words": (
        Triage,
        '{"level": "low", "queue": "mail", "tries": 2, "version": "v1", "mixed": "auto", "share": 0.5}',
        '{"level": "low", "queue": "mail", "tries": 2, "version": "v1", "mixed": "auto", "share": 1.5}',
    ),
    "optional": (
        Settings,
        '{"theme": null, "volume": 7, "language": "de"}',
        '{"theme": null, "volume": 11, "language": "de"}',
    ),
    "decimals": (
        Invoice,
        '{"total": "12.50", "discount": null}',
        '{"total": "12.505", "discount": null}',
    ),
}  # fmt: skip
"""By name: the type, a valid answer with all keys, and an invalid one."""

"""Answer types and responses that the tests of structured answers share."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum
from typing import Any, Literal

import attrs

from crosswalk import ChatMessage, ChatResponse, FinishReason, UsageInfo
from crosswalk.structured import Invariant, Schema
from crosswalk.types import FrozenObject
from crosswalk.types.json import EMPTY_OBJECT


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Point:
    """A place.

    Attributes:
        x: from the left.
        y: from the top; ``None`` where unknown.
    """

    x: int
    y: float | None = None


@attrs.frozen
class Circle:
    kind: Literal["circle"]
    radius: float


@attrs.frozen
class Square:
    kind: Literal["square"]
    side: float


@attrs.frozen
class Node:
    name: str
    child: Node | None = None
    others: tuple[Node, ...] = ()


@attrs.frozen(kw_only=True)
class Everything:
    """One field of every kind."""

    text: str
    count: int = 1
    share: float = 0.5
    is_open: bool = False
    nothing: None = None
    anything: Any = None
    day: date = date(2026, 1, 2)
    moment: datetime | None = None
    colour: Colour = Colour.RED
    size: Literal["S", "L", 1] = "S"
    tags: list[str] = attrs.field(factory=list)
    pair: tuple[Point, ...] = ()
    bare_list: list = attrs.field(factory=list)  # type: ignore[type-arg]
    bare_dict: dict = attrs.field(factory=dict)  # type: ignore[type-arg]
    scores: dict[str, int] = attrs.field(factory=dict)
    extra: FrozenObject = EMPTY_OBJECT
    shape: Circle | Square | None = None
    mixed: str | int | list[int] | dict[str, int] | None = None
    usage: UsageInfo | None = None
    renamed: int = attrs.field(default=0, alias="reNamed")
    needed: int = attrs.field(default=0, metadata={"required": True, "description": "It has to be there."})
    derived: int = attrs.field(init=False, default=7)


def _is_short(_: Any, attribute: Any, value: str) -> None:
    if len(value) > 5:
        raise ValueError(f"{attribute.name} is longer than 5 characters")


@attrs.frozen
class Picky:
    """A class that checks itself."""

    word: str = attrs.field(validator=_is_short)


POINTS = Schema(Point, [Invariant("'x' must be >= 0", lambda point: point.x >= 0)])


def response(
    text: str | None, finish: FinishReason = FinishReason.STOP, refusal: str | None = None
) -> ChatResponse:
    """A response with that text, which ended so."""
    made = ChatResponse.success(ChatMessage.assistant(text), UsageInfo(1, 1), "m")
    return attrs.evolve(made, finish_reason=finish, refusal=refusal)

"""Types as users declare them, each with an answer that fits, its value, and an answer that does not fit.

The wanted outcomes were written before the code that meets them. A type that cannot be declared has the words that the
refusal must contain: what to write instead.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import ipaddress
import pathlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeAlias, TypedDict, TypeVar

import annotated_types as at
import attrs
import msgspec
import pydantic
import pydantic.alias_generators
import pydantic.dataclasses
import typing_extensions as te

__all__ = ["TYPES", "Declared", "Undeclarable"]

Field: Any = pydantic.Field
T = TypeVar("T")


@attrs.frozen
class Declared:
    """A type that can be an answer.

    Attributes:
        kind: the type.
        good: an answer that fits.
        value: its value.
        bad: an answer that does not fit.
    """

    kind: Any
    good: str
    value: Any
    bad: str


@attrs.frozen
class Undeclarable:
    """A type that is refused.

    Attributes:
        kind: the type.
        instead: the words of the refusal that say what to write instead.
    """

    kind: Any
    instead: str


# ------------------------------------------------------------------------------------ classes


@attrs.frozen
class Line:
    item: str
    count: int = 1


@attrs.frozen
class Order:
    lines: list[Line]
    note: str | None = None


@attrs.frozen
class Renamed:
    phone: str = attrs.field(alias="phoneNumber")


@attrs.frozen
class Checked:
    age: int = attrs.field(validator=attrs.validators.ge(18))


@dataclasses.dataclass
class Plain:
    x: int
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    x: int


@dataclasses.dataclass
class Tree:
    label: str
    children: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class QuotedTree:
    label: str
    children: list["QuotedTree"] = dataclasses.field(default_factory=list)  # noqa: UP037 - as many write it


@dataclasses.dataclass
class Positive:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


@dataclasses.dataclass
class Page(Generic[T]):
    items: list[T]


class Movie(TypedDict):
    title: str
    year: te.NotRequired[int]


class Partial(TypedDict, total=False):
    title: te.Required[str]
    year: int


class Film(te.TypedDict):
    title: te.Required[str]
    year: te.NotRequired[int]


class Closed(te.TypedDict, closed=True):
    title: str


class Open(te.TypedDict, extra_items=int):  # type: ignore[call-arg]
    title: str


class Fixed(te.TypedDict):
    title: te.ReadOnly[str]


class Spot(NamedTuple):
    x: int
    y: int = 0


class NewSpot(te.NamedTuple):
    x: int


class Struct(msgspec.Struct):
    name: str
    age: Annotated[int, msgspec.Meta(ge=0)] = 0
    tags: list[str] = []


class CamelStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    first_name: str


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    lives: int


class Book(pydantic.BaseModel):
    title: str
    pages: int = Field(ge=1)


class Aliased(pydantic.BaseModel):
    x: int = Field(validation_alias=pydantic.AliasChoices("x", "ex"))


class DefaultAliased(pydantic.BaseModel):
    x: int = Field(1, validation_alias=pydantic.AliasChoices("x", "ex"))


class Percent(pydantic.BaseModel):
    score: float

    @pydantic.field_validator("score", mode="before")
    @classmethod
    def strip(cls, value: Any) -> Any:
        return value.rstrip("%") if isinstance(value, str) else value


class Percentage(pydantic.BaseModel):
    score: float

    @pydantic.field_validator("score", mode="before")
    @classmethod
    def read(cls, value: Any) -> Any:
        return float(value.rstrip("%")) if isinstance(value, str) else value


class Before(pydantic.BaseModel):
    name: str = ""

    @pydantic.model_validator(mode="before")
    @classmethod
    def renamed(cls, value: Any) -> Any:
        return {"name": value["called"]} if isinstance(value, dict) and "called" in value else value


class Ordered(pydantic.BaseModel):
    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def ordered(self) -> Ordered:
        if self.high < self.low:
            raise ValueError("high is below low")
        return self


class Amount(pydantic.BaseModel):
    amount: Decimal


class Moment(pydantic.BaseModel):
    at: datetime


class Unique(pydantic.BaseModel):
    tags: set[str]


class JSONText(pydantic.BaseModel):
    data: pydantic.Json[list[int]]


class Kind(enum.Enum):
    A = "a"
    B = "b"


class ByKind(pydantic.BaseModel):
    scores: dict[Kind, int]


class ByLiteral(pydantic.BaseModel):
    scores: dict[Literal["a", "b"], int]


class ByUUID(pydantic.BaseModel):
    scores: dict[uuid.UUID, int]


class ByPattern(pydantic.BaseModel):
    scores: dict[Annotated[str, Field(pattern="^k")], int]


class Circle(pydantic.BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(pydantic.BaseModel):
    kind: Literal["square"]
    side: float


class Drawing(pydantic.BaseModel):
    shapes: list[Annotated[Circle | Square, Field(discriminator="kind")]]


class Names(pydantic.RootModel[list[str]]):
    pass


class Envelope(pydantic.BaseModel, Generic[T]):
    payload: T


class Forbidding(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    x: int


class Camel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(
        alias_generator=pydantic.alias_generators.to_camel, populate_by_name=True
    )
    first_name: str


@pydantic.dataclasses.dataclass
class Validated:
    x: int = Field(ge=1)


@dataclasses.dataclass
class Linked:
    url: pydantic.HttpUrl
    score: Annotated[float, pydantic.BeforeValidator(lambda value: float(str(value).rstrip("%")))]


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


Age = NewType("Age", int)
Words: TypeAlias = list[str]
Numbers = te.TypeAliasType("Numbers", list[int])
PairOf = te.TypeAliasType("PairOf", tuple[T, T], type_params=(T,))
Nested = te.TypeAliasType("Nested", "dict[str, Nested] | list[Nested] | int")  # type: ignore[misc]


@dataclasses.dataclass
class Held:
    numbers: Numbers
    pair: PairOf[int]


class Callback:
    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run


NOON = datetime(2026, 3, 29, 12, 0, tzinfo=UTC)

TYPES: dict[str, Declared | Undeclarable] = {
    # leaves
    "str": Declared(str, '"a"', "a", "1"),
    "int": Declared(int, "3", 3, '"three"'),
    "float": Declared(float, "1.5", 1.5, '"1.5"'),
    "bool": Declared(bool, "true", True, "1"),
    "Decimal": Declared(Decimal, "12.50", Decimal("12.50"), '"12.50 EUR"'),
    "date": Declared(date, '"2026-03-29"', date(2026, 3, 29), '"29.3.2026"'),
    "datetime": Declared(datetime, '"2026-03-29T12:00:00Z"', NOON, '"2026-03-29T12:00:00"'),
    "time": Declared(time, '"12:30:00"', time(12, 30), '"noon"'),
    "timedelta": Declared(timedelta, "90", timedelta(seconds=90), '"90"'),
    "UUID": Declared(uuid.UUID, f'"{uuid.UUID(int=7)}"', uuid.UUID(int=7), '"7"'),
    "bytes": Declared(bytes, '"aGk="', b"hi", '"hi!"'),
    "Path": Declared(pathlib.Path, '"a/b.txt"', pathlib.Path("a/b.txt"), "1"),
    "PurePosixPath": Declared(pathlib.PurePosixPath, '"a/b"', pathlib.PurePosixPath("a/b"), "[]"),
    "IPv4Address": Declared(ipaddress.IPv4Address, '"10.0.0.1"', ipaddress.IPv4Address("10.0.0.1"), '"10.0.0"'),
    "IPv6Address": Declared(ipaddress.IPv6Address, '"::1"', ipaddress.IPv6Address("::1"), '"10.0.0.1"'),
    "IPv4Network": Declared(
        ipaddress.IPv4Network, '"10.0.0.0/8"', ipaddress.IPv4Network("10.0.0.0/8"), '"10.0.0.1/8"'
    ),
    "Any": Declared(Any, '{"a": 1}', {"a": 1}, "no JSON"),
    "object": Declared(object, '{"a": [1]}', {"a": [1]}, "no JSON"),
    "NewType": Declared(Age, "3", 3, '"3 years"'),
    "Literal": Declared(Literal["approve", "reject"], "approve", "approve", "approved"),
    "Literal of kinds": Declared(Literal["a", 1, True], "1", 1, "2"),
    "Enum": Declared(Kind, '"a"', Kind.A, '"c"'),
    "StrEnum": Declared(Colour, "red", Colour.RED, "pink"),
    "IntEnum": Declared(Level, "2", Level.HIGH, "3"),
    "IntFlag": Declared(Rights, "3", Rights.READ | Rights.WRITE, "4"),
    # containers
    "list": Declared(list[int], "[1, 2]", [1, 2], '["a"]'),
    "TypeAlias": Declared(Words, '["a"]', ["a"], "[1]"),
    "tuple": Declared(tuple[int, str], '[1, "a"]', (1, "a"), "[1]"),
    "tuple of any length": Declared(tuple[int, ...], "[1, 2, 3]", (1, 2, 3), '["a"]'),
    "set": Declared(set[int], "[1, 2]", {1, 2}, '["a"]'),
    "frozenset": Declared(frozenset[str], '["a"]', frozenset("a"), "[1]"),
    "Sequence": Declared(Sequence[int], "[1]", [1], "{}"),
    "deque": Declared(collections.deque[int], "[1, 2]", collections.deque([1, 2]), '["a"]'),
    "dict": Declared(dict[str, int], '{"a": 1}', {"a": 1}, '{"a": "b"}'),
    "Mapping": Declared(Mapping[str, int], '{"a": 1}', {"a": 1}, '{"a": "b"}'),
    "OrderedDict": Declared(
        collections.OrderedDict[str, int], '{"b": 1, "a": 2}', collections.OrderedDict(b=1, a=2), '{"a": "b"}'
    ),
    "defaultdict": Declared(
        collections.defaultdict[str, list[int]], '{"a": [1]}', collections.defaultdict(list, a=[1]), '{"a": 1}'
    ),
    "Counter": Declared(collections.Counter[str], '{"a": 2}', collections.Counter("aa"), '{"a": "b"}'),
    "dict by int": Declared(dict[int, str], '{"1": "a", "-2": "b"}', {1: "a", -2: "b"}, '{"one": "a"}'),
    "dict by Literal": Declared(dict[Literal["a", "b"], int], '{"a": 1}', {"a": 1}, '{"c": 1}'),
    "dict by Enum": Declared(dict[Kind, int], '{"a": 1, "b": 2}', {Kind.A: 1, Kind.B: 2}, '{"c": 1}'),
    "dict by IntEnum": Declared(dict[Level, str], '{"1": "a"}', {Level.LOW: "a"}, '{"3": "a"}'),
    "dict by UUID": Declared(
        dict[uuid.UUID, int], f'{{"{uuid.UUID(int=7)}": 1}}', {uuid.UUID(int=7): 1}, '{"7": 1}'
    ),
    "dict by date": Declared(
        dict[date, int], '{"2026-03-29": 1}', {date(2026, 3, 29): 1}, '{"29 March": 1}'
    ),
    "dict by limited str": Declared(
        dict[Annotated[str, Field(pattern="^k")], int], '{"k1": 1}', {"k1": 1}, '{"x1": 1}'
    ),
    "Optional": Declared(int | None, "3", 3, '"x"'),
    "union": Declared(int | list[int], "[3]", [3], '"x"'),
    "alias of type": Declared(Numbers, "[1]", [1], '["a"]'),
    "generic alias of type": Declared(PairOf[int], "[1, 2]", (1, 2), '[1, "a"]'),
    "recursive alias of type": Declared(Nested, '{"a": [1, {"b": 2}]}', {"a": [1, {"b": 2}]}, '{"a": ["x"]}'),
    # classes
    "attrs": Declared(Order, '{"lines": [{"item": "a"}]}', Order([Line("a")]), '{"lines": [{"count": 1}]}'),
    "attrs with an alias": Declared(Renamed, '{"phoneNumber": "1"}', Renamed("1"), '{"phoneNumber": 1}'),
    "attrs with a validator": Declared(Checked, '{"age": 18}', Checked(18), '{"age": 17}'),
    "list of attrs": Declared(list[Line], '[{"item": "a", "count": 2}]', [Line("a", 2)], '[{"count": 2}]'),
    "dataclass": Declared(Plain, '{"x": 1, "tags": ["a"]}', Plain(1, ["a"]), '{"x": "1"}'),
    "dataclass, frozen": Declared(Strict, '{"x": 1}', Strict(x=1), "{}"),
    "dataclass, recursive": Declared(
        Tree, '{"label": "a", "children": [{"label": "b"}]}', Tree("a", [Tree("b")]), '{"label": "a", "children": [1]}'
    ),
    "dataclass, recursive by a quoted name": Declared(
        QuotedTree, '{"label": "a", "children": [{"label": "b"}]}', QuotedTree("a", [QuotedTree("b")]),
        '{"label": "a", "children": [1]}',
    ),
    "dataclass that checks": Declared(Positive, '{"x": 1}', Positive(1), '{"x": -1}'),
    "dataclass, generic": Declared(Page[int], '{"items": [1]}', Page([1]), '{"items": ["a"]}'),
    "dataclass of aliases": Declared(
        Held, '{"numbers": [1], "pair": [1, 2]}', Held([1], (1, 2)), '{"numbers": [1], "pair": [1]}'
    ),
    "TypedDict": Declared(Movie, '{"title": "a"}', {"title": "a"}, '{"year": 1}'),
    "TypedDict, not total": Declared(Partial, '{"title": "a"}', {"title": "a"}, '{"year": 1}'),
    "TypedDict of typing_extensions": Declared(Film, '{"title": "a", "year": 1}', {"title": "a", "year": 1}, '{"year": 1}'),
    "TypedDict, closed": Declared(Closed, '{"title": "a"}', {"title": "a"}, '{"title": "a", "year": 1}'),
    "TypedDict with extra items": Declared(
        Open, '{"title": "a", "year": 1}', {"title": "a", "year": 1}, '{"title": "a", "year": "b"}'
    ),
    "TypedDict, read-only": Declared(Fixed, '{"title": "a"}', {"title": "a"}, '{"title": 1}'),
    "NamedTuple": Declared(Spot, '{"x": 1}', Spot(1), '{"y": 1}'),
    "NamedTuple of typing_extensions": Declared(NewSpot, '{"x": 1}', NewSpot(1), '{"x": "a"}'),
    "msgspec": Declared(Struct, '{"name": "a", "tags": ["b"]}', Struct("a", tags=["b"]), '{"name": "a", "age": -1}'),
    "msgspec, renamed": Declared(
        CamelStruct, '{"firstName": "a"}', CamelStruct("a"), '{"firstName": "a", "lastName": "b"}'
    ),
    "msgspec, tagged": Declared(Cat | Dog, '{"type": "dog", "lives": 1}', Dog(1), '{"type": "cow", "lives": 1}'),
    # pydantic
    "pydantic": Declared(Book, '{"title": "a", "pages": 1}', Book(title="a", pages=1), '{"title": "a", "pages": 0}'),
    "list of pydantic": Declared(
        list[Book], '[{"title": "a", "pages": 1}]', [Book(title="a", pages=1)], '[{"title": "a"}]'
    ),
    "union of pydantic": Declared(
        Circle | Square, '{"kind": "square", "side": 1}', Square(kind="square", side=1), '{"kind": "dot"}'
    ),
    "pydantic, AliasChoices": Declared(Aliased, '{"ex": 1}', Aliased(x=1), '{"why": 1}'),
    "pydantic, AliasChoices with a default": Declared(DefaultAliased, '{"ex": 2}', DefaultAliased(x=2), '{"why": 2}'),
    "pydantic, strict behind before": Declared(Percentage, '{"score": "55%"}', Percentage(score=55), '{"score": [5]}'),
    "pydantic, before that stays text": Declared(Percent, '{"score": 55}', Percent(score=55), '{"score": "55%"}'),
    "pydantic, model before": Declared(Before, '{"called": "a"}', Before(name="a"), '{"name": 1}'),
    "pydantic, model after": Declared(Ordered, '{"low": 1, "high": 2}', Ordered(low=1, high=2), '{"low": 2, "high": 1}'),
    "pydantic, Decimal": Declared(
        Amount, '{"amount": 99999999999999999999.90}', Amount(amount=Decimal("99999999999999999999.90")), '{"amount": "12 EUR"}'
    ),
    "pydantic, naive datetime": Declared(
        Moment, '{"at": "2026-03-29T12:00:00"}', Moment(at=datetime(2026, 3, 29, 12)), '{"at": "noon"}'
    ),
    "pydantic, set with repeats": Declared(Unique, '{"tags": ["a", "a"]}', Unique(tags={"a"}), '{"tags": [1]}'),
    "pydantic, Json": Declared(JSONText, '{"data": "[1]"}', JSONText(data="[1]"), '{"data": "[1"}'),
    "pydantic, dict by Enum": Declared(ByKind, '{"scores": {"a": 1}}', ByKind(scores={Kind.A: 1}), '{"scores": {"c": 1}}'),
    "pydantic, dict by Literal": Declared(ByLiteral, '{"scores": {"a": 1}}', ByLiteral(scores={"a": 1}), '{"scores": {"c": 1}}'),
    "pydantic, dict by UUID": Declared(
        ByUUID, f'{{"scores": {{"{uuid.UUID(int=7)}": 1}}}}', ByUUID(scores={uuid.UUID(int=7): 1}), '{"scores": {"7": 1}}'
    ),
    "pydantic, dict by constr": Declared(ByPattern, '{"scores": {"k1": 1}}', ByPattern(scores={"k1": 1}), '{"scores": {"x1": 1}}'),
    "pydantic, discriminator": Declared(
        Drawing, '{"shapes": [{"kind": "circle", "radius": 1}]}', Drawing(shapes=[Circle(kind="circle", radius=1)]),
        '{"shapes": [{"kind": "circle", "side": 1}]}',
    ),
    "pydantic, RootModel": Declared(Names, '["a"]', Names(["a"]), "[1]"),
    "pydantic, generic": Declared(Envelope[int], '{"payload": 1}', Envelope[int](payload=1), '{"payload": "a"}'),
    "pydantic, forbid": Declared(Forbidding, '{"x": 1}', Forbidding(x=1), '{"x": 1, "y": 2}'),
    "pydantic, alias generator": Declared(Camel, '{"firstName": "a"}', Camel(first_name="a"), '{"firstName": 1}'),
    "pydantic, dataclass": Declared(Validated, '{"x": 1}', Validated(1), '{"x": 0}'),
    "pydantic types in a dataclass": Declared(
        Linked, '{"url": "https://a.org/", "score": "55%"}', Linked(pydantic.HttpUrl("https://a.org/"), 55.0),
        '{"url": "a b", "score": 1}',
    ),
    "pydantic, UUID4": Declared(
        pydantic.UUID4, '"6f1f1b0a-33a5-4d15-9a1b-4b6f7d3d2f10"', uuid.UUID("6f1f1b0a-33a5-4d15-9a1b-4b6f7d3d2f10"), f'"{uuid.UUID(int=7)}"'
    ),
    # limits and validators
    "ge": Declared(Annotated[int, Field(ge=1)], "1", 1, "0"),
    "interval": Declared(Annotated[float, at.Interval(gt=0, lt=1)], "0.5", 0.5, "1"),
    "length of a list": Declared(Annotated[list[int], at.Len(1, 2)], "[1]", [1], "[]"),
    "pattern": Declared(Annotated[str, Field(pattern="^a")], '"ab"', "ab", '"ba"'),
    "AfterValidator": Declared(Annotated[int, pydantic.AfterValidator(even)], "2", 2, "3"),
    "Predicate": Declared(Annotated[str, at.Predicate(str.islower)], '"a"', "a", '"A"'),
    "after a date": Declared(
        Annotated[date, at.Gt(date(2020, 1, 1))], '"2026-03-29"', date(2026, 3, 29), '"2019-01-01"'
    ),
    "digits": Declared(Annotated[Decimal, Field(max_digits=3)], "1.50", Decimal("1.50"), "12.55"),
    "stripped": Declared(Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1)], '" a "', "a", '" "'),
    # what JSON has no form for
    "complex": Undeclarable(complex, "two numbers"),
    "Callable": Undeclarable(Callable[[], None], "str"),
    "type": Undeclarable(type, "Literal"),
    "a class without fields": Undeclarable(Callback, "dataclass"),
    "slice": Undeclarable(slice, "dataclass"),
    "TypeVar": Undeclarable(list[T], "argument"),  # type: ignore[valid-type]
    "dict by tuple": Undeclarable(dict[tuple[int, int], str], "list"),
    "an attrs class with a validator of pydantic": Undeclarable(
        Annotated[Line, pydantic.AfterValidator(even)], "pydantic model"
    ),
}  # fmt: skip

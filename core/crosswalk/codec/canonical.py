"""The kinds of leaves of the Responses types."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from crosswalk.codec.kinds import JSONObject, Kind, Leaf, Number
from crosswalk.codec.problems import Problem, shortened
from crosswalk.types.json import FrozenObject

__all__ = ["LEAVES"]

_Object: TypeAlias = dict[str, Any]


# ---------------------------------------------------------------------------------------------- leaves


class _Time(Kind):
    json_types = (str,)

    def read(self, value: Any, keep: bool = False) -> datetime:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        try:
            time = datetime.fromisoformat(value)
            if time.tzinfo is not None:
                return time.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise Problem(f"expected an ISO 8601 time with its zone, got {shortened(value)!r}")


class _Duration(Number):
    def __init__(self) -> None:
        super().__init__()
        self.plain = None

    def read(self, value: Any, keep: bool = False) -> Any:
        try:
            return timedelta(seconds=super().read(value))
        except OverflowError:
            raise Problem("expected seconds, got more than a billion days") from None


class _Decimal(Kind):
    json_types = (str,)

    def read(self, value: Any, keep: bool = False) -> Decimal:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        if not _DECIMAL.fullmatch(value):
            raise Problem(f"expected a decimal number, got {shortened(value)!r}")
        return Decimal(value)


_DECIMAL: Final = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")


LEAVES: Final[dict[Any, Kind]] = {
    str: Leaf(str, "string"),
    int: Leaf(int, "integer"),
    float: Number(),
    bool: Leaf(bool, "boolean"),
    datetime: _Time(),
    timedelta: _Duration(),
    Decimal: _Decimal(),
    FrozenObject: JSONObject(),
    Any: Kind(),
}

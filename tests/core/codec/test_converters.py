"""Canonical types in a class of somebody else's, read and written by cattrs."""

from __future__ import annotations

from typing import Any

import attrs
import cattrs
import orjson
import pytest
from hypothesis import given

from crosswalk import ChatResponse, UsageInfo
from crosswalk.codec import configure_converter, from_json, to_json
from crosswalk.errors import CanonicalJSONError
from strategies import chat_responses


@attrs.frozen
class Exchange:
    user: str
    answer: ChatResponse
    usages: list[UsageInfo]


@pytest.fixture(params=[cattrs.Converter, cattrs.GenConverter, cattrs.BaseConverter])
def converter(request: pytest.FixtureRequest) -> Any:
    made = request.param()
    configure_converter(made)
    return made


CONVERTER = cattrs.Converter()
configure_converter(CONVERTER)


@given(chat_responses)
def test_a_class_that_holds_them_is_read_as_it_was_written(answer: ChatResponse) -> None:
    exchange = Exchange("u-1", answer, [answer.usage])
    written = orjson.dumps(CONVERTER.unstructure(exchange))
    assert CONVERTER.structure(orjson.loads(written), Exchange) == attrs.evolve(
        exchange, answer=from_json(to_json(answer), ChatResponse)
    )


def test_every_kind_of_converter_knows_them(converter: Any) -> None:
    usage = UsageInfo(1, 2, cached_tokens=1)
    assert converter.unstructure(usage) == {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "cached_tokens": 1,
    }
    assert (
        converter.structure({"prompt_tokens": 1, "completion_tokens": 2, "cached_tokens": 1}, UsageInfo)
        == usage
    )


def test_nothing_is_coerced(converter: Any) -> None:
    """cattrs alone would make a number of ``"1"``."""
    with pytest.raises(CanonicalJSONError, match="expected integer, got string"):
        converter.structure({"prompt_tokens": "1", "completion_tokens": 2}, UsageInfo)

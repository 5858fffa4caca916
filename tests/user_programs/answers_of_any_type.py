"""Parse what is no class: a choice, a JSON Schema, a type with bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from crosswalk import ToolCall
from crosswalk.structured import StructuredParser
from crosswalk.structured.metrics import MemoryCache, ParserMetrics

metrics, cache = ParserMetrics(), MemoryCache()
yes = StructuredParser(Literal["yes", "no"], metrics=metrics, cache=cache).parse("yes")
print(yes.value == "yes")
schema = StructuredParser({"type": "object", "properties": {"n": {"type": "integer"}}})
checked = schema.parse('{"n": 0}')
print(checked.value, checked.errors)
tags = StructuredParser(Annotated[list[str], Field(min_length=1)])
tagged = tags.parse('["a"]')
print(tagged.value, tagged.errors)
either = StructuredParser(int | str).parse("7")
print(either.value)
prices = StructuredParser(dict[str, Decimal]).parse('{"tea": 12.50}').value
print({} if prices is None else {name: price * 2 for name, price in prices.items()})
print(ToolCall("call_1", "f", '{"n": 1}').parsed(), metrics.get_stats()["counters"], cache.stats().hit_rate)

"""Ask for a value of a class, and read one out of a text."""

from __future__ import annotations

from typing import Literal

import attrs
from pydantic import BaseModel

from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.structured import Invariant, Schema, StructuredParser, parse


@attrs.frozen
class Order:
    """An order."""

    item: str
    count: int
    size: Literal["small", "large"] = "small"


class Review(BaseModel):
    stars: int
    text: str


parser = StructuredParser(Schema(Order, [Invariant("at least one", lambda order: order.count >= 1)]))
result = parser.parse('Sure! {"item": "tea", "count": 2}')
if result.value is not None:
    print(result.value.item.upper(), result.value.count + 1, result.before)
print(result.errors, result.reason, result.stage)

numbers = StructuredParser(list[int]).parse("[1, 2]").value
print(0 if numbers is None else sum(numbers))
if found := parse("{}", Order):
    print(found.value)

with SyncLLMService(Endpoint("openai", model="gpt")) as service:
    answer = service.complete_json("Review this book.", Review, retries=1)
    print(answer.value.stars + 1, answer.value.text.upper(), answer.response.usage.total_tokens)
    many = service.complete_json("Two orders, please.", list[Order])
    print([order.item for order in many.value])
    with service.stream_json("Review it.", Review) as growing:
        for partial in growing:
            print(partial)
        print(growing.answer.value.stars)

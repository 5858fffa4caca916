"""The Responses API as types."""

from __future__ import annotations

from typing import Literal

from crosswalk.responses import (
    Item,
    Response,
    ResponseAccumulator,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponsesValueError,
    parse_event,
    parse_item,
    parse_response,
    record,
    register_item,
    to_json,
)


@register_item
@record
class Telepathy(Item):
    type: Literal["telepathy_call"] = "telepathy_call"
    thought: str


def texts(body: bytes) -> list[str]:
    response = parse_response(body)
    found: list[str] = []
    for item in response.output:
        match item:
            case ResponseOutputMessage():
                for part in item.content:
                    if isinstance(part, ResponseOutputText):
                        found += [part.text, *(str(one.type) for one in part.annotations)]
            case ResponseFunctionToolCall():
                found += [item.name, item.arguments]
            case _:
                found.append(str(item.type))
    return found


def renamed(response: Response) -> bytes:
    try:
        return to_json(response.replace(model="large"))
    except ResponsesValueError as error:
        return str(error).encode()


accumulator = ResponseAccumulator()
for event in [b'{"type": "response.created"}']:
    accumulator.add(parse_event(event))
print(accumulator.final().output_text, parse_item({"type": "telepathy_call", "thought": "a rose"}))

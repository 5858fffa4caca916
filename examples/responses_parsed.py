"""Ask for structured output and get values: Request -> Response -> ParsedResponse[T].

    python examples/responses_parsed.py

A program would send the request to ``POST /v1/responses``. The answer here was recorded from a server, so that
the program runs without one.
"""

from __future__ import annotations

import attrs

from crosswalk import FrozenObject
from crosswalk.responses import (
    EasyInputMessage,
    MessageRole,
    ParsedResponse,
    ResponseCreateParams,
    ResponseFormatTextJSONSchemaConfig,
    ResponseTextConfig,
    parse_output,
    parse_response,
    to_json,
)


@attrs.frozen
class Event:
    """The event that the model is to extract."""

    name: str
    day: str
    guests: tuple[str, ...]


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "day": {"type": "string"},
        "guests": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "day", "guests"],
    "additionalProperties": False,
}

ANSWER = rb"""{"id":"resp_01","object":"response","created_at":1790000000,"status":"completed","error":null,"model":"tiny",
"output":[{"id":"msg_01","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text",
"text":"{\"name\":\"Fair\",\"day\":\"Friday\",\"guests\":[\"Alice\",\"Bob\"]}","annotations":[]}]}],
"usage":{"input_tokens":30,"output_tokens":16,"total_tokens":46}}"""


def request() -> ResponseCreateParams:
    """Return the request."""
    return ResponseCreateParams(
        model="tiny",
        input=(EasyInputMessage(role=MessageRole.USER, content="Alice and Bob go to a fair on Friday."),),
        text=ResponseTextConfig(
            format=ResponseFormatTextJSONSchemaConfig(name="event", schema=FrozenObject(SCHEMA), strict=True)
        ),
    )


def read(body: bytes) -> ParsedResponse[Event]:
    """Return the response as a value."""
    return parse_output(parse_response(body), Event)


def main() -> None:
    """Show the request and the response."""
    print(f"request: {len(to_json(request()))} bytes")
    parsed = read(ANSWER)
    print(parsed.output_parsed)
    print(parsed.response.usage)


if __name__ == "__main__":
    main()

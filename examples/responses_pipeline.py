"""Show a stream while it arrives: Event -> Processor -> Display.

    python examples/responses_pipeline.py [plain | live | jsonl]

The events are those of one web search and an answer. A real program would get them from a server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from crosswalk.responses import (
    ResponseCompletedEvent,
    ResponseSnapshot,
    ResponseStreamEvent,
    StreamHandler,
    Update,
    default_processors,
    displays,
    parse_event,
)

SEARCH = {"id": "ws_1", "type": "web_search_call", "action": {"type": "search", "query": "highest tide"}}
CITED = {
    "type": "url_citation",
    "url": "https://example.org/fundy",
    "title": "Fundy",
    "start_index": 0,
    "end_index": 12,
}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
PART = {"type": "output_text", "text": "Fundy, 16.3 m.", "annotations": [CITED]}
CALL_AT = {"item_id": "ws_1", "output_index": 0}
PART_AT = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
OUTPUT = [{**SEARCH, "status": "completed"}, {**MESSAGE, "content": [PART]}]

STREAM = [
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**SEARCH, "status": "in_progress"}},
    {"type": "response.web_search_call.searching", **CALL_AT},
    {"type": "response.web_search_call.completed", **CALL_AT},
    {"type": "response.output_text.delta", **PART_AT, "delta": "Fundy, "},
    {"type": "response.output_text.delta", **PART_AT, "delta": "16.3 m."},
    {"type": "response.output_text.annotation.added", **PART_AT, "annotation_index": 0, "annotation": CITED},
    {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": OUTPUT}},
]


def events() -> Iterator[ResponseStreamEvent]:
    """Return the events that the server sends."""
    for number, event in enumerate(STREAM):
        yield parse_event({"sequence_number": number, **event})


def count_words(snapshot: ResponseSnapshot) -> list[Update]:
    """Count the words of the answer: a custom processor."""
    return [Update(kind="words", text=str(len(snapshot.text.split())))]


def main() -> None:
    """Send the events through a pipeline with an additional processor."""
    processors = default_processors()
    processors.register("words", count_words, ResponseCompletedEvent)
    display = displays.make(sys.argv[1] if len(sys.argv) > 1 else "plain", sys.stdout)
    response = StreamHandler(display, processors=processors).run(events())
    print(f"{response.id}: {response.output_text}")


if __name__ == "__main__":
    main()

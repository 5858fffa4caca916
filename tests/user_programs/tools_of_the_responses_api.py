"""A tool of one's own among the items of the Responses API, with citations of what it found."""

from __future__ import annotations

from crosswalk import ToolCall
from crosswalk.responses import (
    CitedResponse,
    DocumentFinderToolCall,
    ResponseToolCall,
    ToolCallRegistry,
    parse_response,
)

registry = ToolCallRegistry()


def run(call: ResponseToolCall) -> ResponseToolCall:
    call = call.advance("searching")
    print(call.status, call.item.id)
    return call.advance("completed")


asked = ToolCall("call_1", "find", '{"queries": ["closing time"]}')
calls = [run(registry.from_chat_tool_call(asked))]
finder = [call for call in calls if isinstance(call, DocumentFinderToolCall)]
response = parse_response(b'{"output": []}')
cited = CitedResponse.of(response, tool_calls=calls).install_citations()
print([call.item for call in finder], cited.response.output_text)

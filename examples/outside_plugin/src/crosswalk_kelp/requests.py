"""Requests to Kelp: each line of the conversation is an array, and the options are knobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.plugins import (
    ChatRequest,
    Drops,
    HTTPRequest,
    RequestRow,
    RequestTable,
    Role,
    TextPart,
    Turn,
    content_parts,
    message_of,
    put_options,
    reasoning_of,
    text_of,
    thaw,
    tool_names,
    unsupported_part,
)

KELP = RequestTable(
    "kelp",
    "Kelp",
    ("/v2/dive",),
    (RequestRow("knobs.heat", "temperature"), RequestRow("knobs.room", "max_tokens")),
)
"""The options that Kelp has, and where."""


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* in Kelp's words.

    Raises:
        UnsupportedRequestError: a message holds something other than text.
    """
    drops = Drops(request)
    names = tool_names(request.messages)
    body: dict[str, Any] = {
        "engine": request.model,
        "lines": [line for turn in request.messages for line in lines_of(turn, names)],
        "flow": request.stream,
    }
    put_options(body, request, KELP, drops)
    if request.tools:
        body["can"] = [[tool.name, tool.description, thaw(tool.parameters)] for tool in request.tools]
    for option in ("tool_choice", "response_format", "reasoning_effort"):
        drops.given(request, option, reason="Kelp has no such knob")
    return HTTPRequest("/v2/dive", body, adaptations=drops.found(), table=KELP)


def lines_of(turn: Turn, names: Any) -> Iterator[list[str]]:
    """The lines of *turn*. A result names the tool, because Kelp's calls have no ids."""
    message = message_of(turn)
    for part in content_parts(message):
        if not isinstance(part, TextPart):
            raise unsupported_part(part, "cannot be sent to Kelp")
    if message.role is Role.TOOL:
        yield ["got", message.name or names.get(message.tool_call_id) or "", message.text]
        return
    if thought := reasoning_of(turn):
        yield ["think", thought]
    if text := text_of(turn):
        yield [{Role.USER: "ask", Role.SYSTEM: "rule"}.get(message.role, "say"), text]
    for call in message.tool_calls or ():
        yield ["do", call.name, call.arguments]

"""Tools: every call of one behind one interface, and the steps of its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.toolkit.call import (
        ResponseToolCall as ResponseToolCall,
        StatusProgression as StatusProgression,
        StatusProgressionError as StatusProgressionError,
        ToolCallError as ToolCallError,
    )
    from crosswalk.responses.toolkit.functions import (
        ComputerToolCall as ComputerToolCall,
        FunctionToolCall as FunctionToolCall,
    )
    from crosswalk.responses.toolkit.registry import (
        ToolCallRegistry as ToolCallRegistry,
        register_tool_call as register_tool_call,
        tool_calls_of as tool_calls_of,
        tool_registry as tool_registry,
    )
    from crosswalk.responses.toolkit.searches import (
        DocumentFinderToolCall as DocumentFinderToolCall,
        FileReaderToolCall as FileReaderToolCall,
        FileSearchToolCall as FileSearchToolCall,
        WebSearchToolCall as WebSearchToolCall,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.toolkit.call": (
                "ResponseToolCall StatusProgression StatusProgressionError ToolCallError"
            ),
            "crosswalk.responses.toolkit.functions": "ComputerToolCall FunctionToolCall",
            "crosswalk.responses.toolkit.registry": (
                "ToolCallRegistry register_tool_call tool_calls_of tool_registry"
            ),
            "crosswalk.responses.toolkit.searches": (
                "DocumentFinderToolCall FileReaderToolCall FileSearchToolCall WebSearchToolCall"
            ),
        },
    )

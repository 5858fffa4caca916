"""Tools: every call of one behind one interface, and the steps of its status (seed 001, "Tool Integration System")."""

from crosswalk.responses.toolkit.call import ResponseToolCall
from crosswalk.responses.toolkit.errors import StatusProgressionError, ToolCallError
from crosswalk.responses.toolkit.functions import ComputerToolCall, FunctionToolCall
from crosswalk.responses.toolkit.items import (
    FilePage,
    FoundDocument,
    ResponseDocumentFinderToolCall,
    ResponseFileReaderToolCall,
    WebSearchResult,
)
from crosswalk.responses.toolkit.progress import StatusProgression
from crosswalk.responses.toolkit.registry import (
    ToolCallRegistry,
    register_tool_call,
    tool_calls_of,
    tool_registry,
)
from crosswalk.responses.toolkit.searches import (
    DocumentFinderToolCall,
    FileReaderToolCall,
    FileSearchToolCall,
)
from crosswalk.responses.toolkit.web import WebSearchToolCall

__all__ = [
    "ComputerToolCall",
    "DocumentFinderToolCall",
    "FilePage",
    "FileReaderToolCall",
    "FileSearchToolCall",
    "FoundDocument",
    "FunctionToolCall",
    "ResponseDocumentFinderToolCall",
    "ResponseFileReaderToolCall",
    "ResponseToolCall",
    "StatusProgression",
    "StatusProgressionError",
    "ToolCallError",
    "ToolCallRegistry",
    "WebSearchResult",
    "WebSearchToolCall",
    "register_tool_call",
    "tool_calls_of",
    "tool_registry",
]

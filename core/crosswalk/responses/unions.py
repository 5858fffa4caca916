"""Large unions of records, loaded on demand because most answers contain few of their types.

``attrs.fields()`` shows a field of such a type as ``Annotated[base class, LazyFamily]``. Its ``LazyFamily.union`` is
the union.
"""

from typing import TYPE_CHECKING, Annotated

from crosswalk.responses.families import LazyFamily
from crosswalk.responses.function_calls import ResponseFunctionToolCall
from crosswalk.responses.function_tools import FunctionTool
from crosswalk.responses.item import Item
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.records import Record

if TYPE_CHECKING:
    from crosswalk.responses.items import ResponseInputItem, ResponseOutputItem
    from crosswalk.responses.tools import Tool
else:
    ResponseOutputItem = Annotated[
        Item,
        LazyFamily(
            "crosswalk.responses.items",
            "ResponseOutputItem",
            (ResponseOutputMessage, ResponseReasoningItem, ResponseFunctionToolCall),
        ),
    ]
    ResponseInputItem = Annotated[Item, LazyFamily("crosswalk.responses.items", "ResponseInputItem")]
    Tool = Annotated[Record, LazyFamily("crosswalk.responses.tools", "Tool", (FunctionTool,))]

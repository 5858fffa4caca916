"""Functions and computers: calls that the program answers with a separate item."""

from collections.abc import Sequence
from typing import Any, Self

import attrs

from crosswalk.responses.annotations import AnnotationFileCitation, AnnotationURLCitation
from crosswalk.responses.chunks import Chunk, CitationAnnotation
from crosswalk.responses.computer_calls import (
    ComputerAction,
    ResponseComputerToolCall,
    ResponseComputerToolCallOutputItem,
    SafetyCheck,
)
from crosswalk.responses.content import ResponseInputFile, ResponseInputText
from crosswalk.responses.function_calls import (
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
    ToolOutput,
)
from crosswalk.responses.records import Record, record
from crosswalk.responses.toolkit.call import (
    RUNNING,
    ResponseToolCall,
    read_arguments,
    write_call,
    wrong_arguments,
)
from crosswalk.responses.vocabulary import ItemStatus
from crosswalk.types.message import ToolCall


@attrs.frozen(repr=False)
class FunctionToolCall(ResponseToolCall[ResponseFunctionToolCall]):
    """A call of a function, whose arguments are the exact text that the model wrote."""

    item_type = ResponseFunctionToolCall
    output_type = ResponseFunctionToolCallOutputItem
    progression = RUNNING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. Any function is accepted."""
        return cls(
            ResponseFunctionToolCall(
                call_id=tool_call.id,
                name=tool_call.name,
                arguments=tool_call.arguments,
                status=ItemStatus.IN_PROGRESS,
            )
        )

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`."""
        if not self.item.call_id or not self.item.name:
            raise self._problem("a chat's tool call needs an id and a name")
        return ToolCall(self.item.call_id, self.item.name, self.item.arguments)

    def chunkify(self) -> tuple[Chunk, ...]:
        """Return a chunk for its text, or for each text and file of its output. A file by id or URL is a source."""
        output = self._output()
        if isinstance(output, str):
            return (Chunk(content=output, title=self.item.name),)
        chunks = []
        for index, part in enumerate(output):
            if isinstance(part, ResponseInputText):
                chunks.append(Chunk(content=part.text, title=self.item.name, index=index))
            elif isinstance(part, ResponseInputFile):
                title, citation = part.filename or self.item.name, _file_source(part)
                chunks.append(Chunk(content="", title=title, annotation=citation, index=index))
        return tuple(chunks)

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`. Parts that are neither text nor file stay."""
        output = self._output()
        if self.output is None:
            return self
        remaining = {chunk.index: chunk.content for chunk in chunks}
        stored: Any = remaining.get(0, "")
        if not isinstance(output, str):
            results = {chunk.index for chunk in self.chunkify()}
            parts = [
                (index, part)
                for index, part in enumerate(output)
                if index in remaining or index not in results
            ]
            stored = tuple(
                part.replace(text=remaining[index]) if isinstance(part, ResponseInputText) else part
                for index, part in parts
            )
        return attrs.evolve(self, output=self.output.replace(output=stored))

    def _output(self) -> ToolOutput:
        return self.output.output if isinstance(self.output, ResponseFunctionToolCallOutputItem) else ()


def _file_source(part: ResponseInputFile) -> CitationAnnotation | None:
    if part.file_id is not None:
        return AnnotationFileCitation(file_id=part.file_id, filename=part.filename)
    return None if part.file_url is None else AnnotationURLCitation(url=part.file_url, title=part.filename)


@record
class _ComputerArguments(Record):
    action: ComputerAction | None = None
    actions: tuple[ComputerAction, ...] | None = None
    pending_safety_checks: tuple[SafetyCheck, ...] | None = None


@attrs.frozen(repr=False)
class ComputerToolCall(ResponseToolCall[ResponseComputerToolCall]):
    """Something to be done on a computer, answered by what the screen then shows."""

    item_type = ResponseComputerToolCall
    output_type = ResponseComputerToolCallOutputItem
    chat_name = "computer"
    progression = RUNNING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are ``action`` or ``actions``."""
        requested = read_arguments(tool_call, _ComputerArguments, cls)
        if requested.action is None and requested.actions is None:
            raise wrong_arguments(tool_call, "nothing is to be done")
        return cls(
            ResponseComputerToolCall(
                call_id=tool_call.id,
                action=requested.action,
                actions=requested.actions,
                pending_safety_checks=requested.pending_safety_checks or (),
                status=ItemStatus.IN_PROGRESS,
            )
        )

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`. Pending safety checks are included."""
        item = self.item
        if item.action is None and item.actions is None:
            raise self._problem("does not say yet what it does")
        checks = item.pending_safety_checks or None
        return write_call(
            self, _ComputerArguments(action=item.action, actions=item.actions, pending_safety_checks=checks)
        )

    def chunkify(self) -> tuple[Chunk, ...]:
        """Return a chunk with the URL of the screenshot, which is not a source. None if the image is inline."""
        if not isinstance(self.output, ResponseComputerToolCallOutputItem):
            return ()
        location = self.output.output.file_id or self.output.output.image_url or "data:"
        return () if location.startswith("data:") else (Chunk(content=location, title="screenshot"),)

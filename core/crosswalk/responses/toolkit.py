"""Tools: every call of one behind one interface, and the registry of tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, Self

import attrs
from typing_extensions import TypeVar

from crosswalk.errors import ToolCallArgumentsError
from crosswalk.responses.citations import Chunk, CitationAnnotation
from crosswalk.responses.content import (
    AnnotationFileCitation,
    AnnotationURLCitation,
    ResponseInputFile,
    ResponseInputText,
)
from crosswalk.responses.items import (
    ComputerAction,
    ResponseComputerToolCall,
    ResponseComputerToolCallOutputItem,
    SafetyCheck,
    register_item,
)
from crosswalk.responses.messages import (
    Item,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
    ToolOutput,
)
from crosswalk.responses.reading import parse, to_json
from crosswalk.responses.records import ResponsesRecord, keys_of, record, tags_of
from crosswalk.responses.server_calls import (
    ActionFind,
    ActionOpenPage,
    ActionSearch,
    FilePage,
    FileSearchResult,
    FoundDocument,
    ResponseDocumentFinderToolCall,
    ResponseFileReaderToolCall,
    ResponseFileSearchToolCall,
    ResponseFunctionWebSearch,
    WebSearchAction,
    WebSearchResult,
    WebSearchSource,
    WebSearchURL,
)
from crosswalk.responses.vocabulary import CallStatus, ItemStatus, ResponsesError
from crosswalk.text import brief, clean_message, short_repr
from crosswalk.types.message import ToolCall

# ------------------------------------------------------------------------------------ call
# The one interface of all tool calls, and the statuses that a call goes through.


class ToolCallError(ResponsesError, ValueError):
    """A tool call that is not of the tool asked for, that lacks what the other form needs, or of no registered tool.

    Attributes:
        tool: the tool, as the ``type`` of its items, or ``None`` when it is not known.
        call_id: the call, shortened, or ``None`` when it has no id.
    """

    def __init__(self, problem: str, *, tool: str | None = None, call_id: str | None = None) -> None:
        self.tool = tool
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        call_label = " ".join(part for part in (tool, self.call_id and repr(self.call_id)) if part)
        super().__init__(f"{call_label}: {problem}" if call_label else problem)


class StatusProgressionError(ResponsesError, ValueError):
    """A call's status that cannot follow the one before.

    Attributes:
        tool: the tool, as the ``type`` of its items.
        before: the status it had, or ``None`` when it had none.
        after: the status it should have had next, shortened.
        call_id: the call, shortened, or ``None`` when it has no id.
    """

    def __init__(self, *, tool: str, before: str | None, after: str, call_id: str | None = None) -> None:
        self.tool = tool
        self.before = before
        self.after = clean_message(after, 40)
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        call_label = tool if self.call_id is None else f"{tool} {self.call_id!r}"
        problem = f"cannot follow {before!r}" if before is not None else "is not a status of this tool"
        super().__init__(f"{call_label}: {self.after!r} {problem}")


@attrs.frozen
class StatusProgression:
    """The steps that a tool's status takes.

    A call goes along the *path*, one step at a time, and from its last step to the *end*. It may break off at any
    step: a response that is cancelled or full ends calls that have hardly begun. A final status
    does not change. Repeating the same status is allowed.

    Attributes:
        path: the steps on the way, in order.
        end: the final status of a successful call.
        interruptions: the other final statuses.
    """

    path: tuple[str, ...]
    end: str = "completed"
    interruptions: frozenset[str] = frozenset({"incomplete"})

    @property
    def words(self) -> frozenset[str]:
        """All the statuses that there are."""
        return frozenset({*self.path, self.end, *self.interruptions})

    def allows(self, before: str | None, after: str) -> bool:
        """Return whether *after* may follow *before*. Anything may follow an unknown status."""
        if after not in self.words:
            return False
        if before is None or before == after:
            return True
        if before not in self.path:
            return False
        next_status = (*self.path, self.end)[self.path.index(before) + 1]
        return after == next_status or after in self.interruptions

    def check(self, before: str | None, after: str, *, tool: str, call_id: str | None = None) -> None:
        """Refuse an impossible step.

        Raises:
            StatusProgressionError: a call that was *before* cannot next be *after*.
        """
        if not self.allows(before, after):
            raise StatusProgressionError(
                tool=tool, before=before if after in self.words else None, after=after, call_id=call_id
            )


SEARCHING: Final = StatusProgression(
    ("in_progress", "searching"), interruptions=frozenset({"incomplete", "failed"})
)
"""Of searches: ``in_progress -> searching -> completed``."""
RUNNING: Final = StatusProgression(("in_progress",))
"""Of functions and most other tools: ``in_progress -> completed``."""


ItemT = TypeVar("ItemT", bound=Item, default=Any)
R = TypeVar("R", bound=ResponsesRecord)


@brief
@attrs.frozen(repr=False)
class ResponseToolCall(ABC, Generic[ItemT]):
    """A call of a tool: its item, and the item that answers it, if the answer is a separate item.

    A tool is a subclass, registered with :func:`crosswalk.responses.register_tool_call`.

    Attributes:
        item: the call, as in a response.
        output: its answer, as in the next request, or ``None`` if it is unanswered or the results of the tool are in
            the call.

    Raises:
        ToolCallError: an item of another tool, or the output of another call.
    """

    item: ItemT
    output: Item | None = None

    item_type: ClassVar[type[Item]]
    """The type of its items, which has a literal ``type``."""
    output_type: ClassVar[type[Item] | None] = None
    """The type of the items that answer it, or ``None`` if its results are in the call."""
    chat_name: ClassVar[str | None] = None
    """The name of its function in chat, or ``None`` if it has many names, like functions."""
    progression: ClassVar[StatusProgression]
    """The steps of its status."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.item, self.item_type):
            raise ToolCallError(f"expected {self.item_type.__name__}, got {type(self.item).__name__}")
        if self.output is None:
            return
        if self.output_type is None or not isinstance(self.output, self.output_type):
            raise self._problem(f"is not answered by a {type(self.output).__name__}")
        answered_id = getattr(self.output, "call_id", None)
        if answered_id is not None and answered_id != self.id:
            raise self._problem("the output is another call's")

    __repr__ = short_repr("item", "output")

    @classmethod
    @abstractmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """The call that *tool_call* of a chat asks for, in progress.

        Raises:
            ToolCallError: it is a call of another tool.
            ToolCallArgumentsError: its arguments are not what the tool takes.
        """

    @abstractmethod
    def to_chat_tool_call(self) -> ToolCall:
        """Return the tool call in a chat: id, name and arguments, without status and results.

        Raises:
            ToolCallError: it has no id, or its action is not known yet.
        """

    @abstractmethod
    def chunkify(self) -> tuple[Chunk, ...]:
        """Return its results, in order, or none so far."""

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """Return the call with only *chunks*, of those of :meth:`chunkify`, as its results, with their contents.

        A tool that does not implement it is unchanged.
        """
        return self

    @classmethod
    def tool(cls) -> str:
        """The ``type`` of its items."""
        return str(tags_of(cls.item_type)[0])

    @property
    def id(self) -> str | None:
        """The id that answers name: ``call_id``, or the item's ``id`` if the server answers."""
        call_id: str | None = getattr(self.item, "call_id", None) or self.item.id
        return call_id

    @property
    def status(self) -> str | None:
        """Its status, or ``None`` if unknown."""
        item_status = getattr(self.item, "status", None)
        return None if item_status is None else str(item_status)

    def advance(self, status: str) -> Self:
        """Return the call with its next status, or with the same one.

        Raises:
            StatusProgressionError: *status* cannot follow the present one.
            ToolCallError: *status* is not a string.
        """
        if not isinstance(status, str):
            raise self._problem(f"expected a status, got {type(status).__name__}")
        self.progression.check(self.status, status, tool=self.tool(), call_id=self.id)
        return self._having(status=status)

    def answered(self, output: Item) -> Self:
        """Return the call with *output* as its answer.

        Raises:
            ToolCallError: it does not answer this call.
        """
        return attrs.evolve(self, output=output)

    def _having(self, **changes: Any) -> Self:
        return attrs.evolve(self, item=self.item.replace(**changes))

    def _problem(self, problem: str) -> ToolCallError:
        return ToolCallError(problem, tool=self.tool(), call_id=self.id)


def read_arguments(
    tool_call: ToolCall,
    arguments: type[R],
    tool: type[ResponseToolCall[Any]],
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> R:
    """Return the arguments of *tool_call*, which must be a call of *tool*.

    Args:
        tool_call: the call.
        arguments: the class of the tool's arguments.
        tool: the tool.
        prepare: brings the arguments, as the model wrote them, into the form of *arguments*.

    Raises:
        ToolCallError: it is a call of another tool.
        ToolCallArgumentsError: its arguments do not match *arguments*. Unknown ones are refused.
    """
    if tool_call.name != tool.chat_name:
        raise ToolCallError(f"is not a call of {tool.chat_name!r}", tool=tool.tool(), call_id=tool_call.id)
    data = tool_call.parsed()
    try:
        parsed_arguments = parse(arguments, prepare(data))
    except ResponsesError as error:
        problem = str(error)
    else:
        unknown_field = next(_unknown_fields(parsed_arguments), None)
        if unknown_field is None:
            return parsed_arguments
        problem = f"it takes no {clean_message(unknown_field, 40)!r}"
    raise wrong_arguments(tool_call, problem)


def wrong_arguments(tool_call: ToolCall, problem: str) -> ToolCallArgumentsError:
    """Return the error of a call with JSON arguments that its tool does not accept."""
    name, call_id = clean_message(tool_call.name, 60), clean_message(tool_call.id, 60)
    return ToolCallArgumentsError(
        f"arguments of tool call {call_id!r} to {name!r}: {problem}",
        name=tool_call.name,
        call_id=tool_call.id,
    )


def with_text(result: Any, text: str) -> Any:
    """Return *result*, a record with a ``text``, with *text*. No text and an empty one are the same."""
    return result if (result.text or "") == text else result.replace(text=text)


def _unknown_fields(value: Any) -> Iterator[str]:
    if isinstance(value, ResponsesRecord):
        yield from value.extensions
        for name in keys_of(type(value)).values():
            yield from _unknown_fields(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _unknown_fields(item)


def write_call(call: ResponseToolCall[Any], arguments: ResponsesRecord) -> ToolCall:
    """The chat's form of *call*.

    Raises:
        ToolCallError: it has no id.
    """
    if not call.id or call.chat_name is None:
        raise ToolCallError("a chat's tool call needs an id", tool=call.tool())
    return ToolCall(call.id, call.chat_name, to_json(arguments).decode())


class _ArgumentsCall(ResponseToolCall[ItemT]):
    """A call whose arguments in a chat are fields of its item."""

    arguments: ClassVar[type[ResponsesRecord]]
    """The fields, as a record."""

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`."""
        arguments = read_arguments(tool_call, cls.arguments, cls)
        fields = {name: getattr(arguments, name) for name in keys_of(cls.arguments).values()}
        given_fields = {name: value for name, value in fields.items() if value is not None}
        id_field = "call_id" if cls.output_type else "id"
        item: Any = cls.item_type(**{id_field: tool_call.id, "status": "in_progress"}, **given_fields)
        return cls(item)

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`."""
        item_fields = {name: getattr(self.item, name) for name in keys_of(self.arguments).values()}
        return write_call(self, self.arguments(**item_fields))


# ------------------------------------------------------------------------------- functions
# Functions and computers: calls that the program answers with a separate item.


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
        remaining_contents = {chunk.index: chunk.content for chunk in chunks}
        new_output: Any = remaining_contents.get(0, "")
        if not isinstance(output, str):
            result_indexes = {chunk.index for chunk in self.chunkify()}
            remaining_parts = [
                (index, part)
                for index, part in enumerate(output)
                if index in remaining_contents or index not in result_indexes
            ]
            new_output = tuple(
                part.replace(text=remaining_contents[index]) if isinstance(part, ResponseInputText) else part
                for index, part in remaining_parts
            )
        return attrs.evolve(self, output=self.output.replace(output=new_output))

    def _output(self) -> ToolOutput:
        return self.output.output if isinstance(self.output, ResponseFunctionToolCallOutputItem) else ()


def _file_source(part: ResponseInputFile) -> CitationAnnotation | None:
    if part.file_id is not None:
        return AnnotationFileCitation(file_id=part.file_id, filename=part.filename)
    return None if part.file_url is None else AnnotationURLCitation(url=part.file_url, title=part.filename)


@record
class _ComputerArguments(ResponsesRecord):
    action: ComputerAction | None = None
    actions: tuple[ComputerAction, ...] | None = None
    pending_safety_checks: tuple[SafetyCheck, ...] | None = None


@attrs.frozen(repr=False)
class ComputerToolCall(_ArgumentsCall[ResponseComputerToolCall]):
    """Something to be done on a computer, answered by what the screen then shows."""

    item_type = ResponseComputerToolCall
    output_type = ResponseComputerToolCallOutputItem
    chat_name = "computer"
    progression = RUNNING
    arguments = _ComputerArguments

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are ``action`` or ``actions``."""
        call = super().from_chat_tool_call(tool_call)
        if call.item.action is None and call.item.actions is None:
            raise wrong_arguments(tool_call, "nothing is to be done")
        return call

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`. Pending safety checks are included."""
        if self.item.action is None and self.item.actions is None:
            raise self._problem("has no action yet")
        checks = self.item.pending_safety_checks or None
        arguments = _ComputerArguments(
            action=self.item.action, actions=self.item.actions, pending_safety_checks=checks
        )
        return write_call(self, arguments)

    def chunkify(self) -> tuple[Chunk, ...]:
        """Return a chunk with the URL of the screenshot, which is not a source. None if the image is inline."""
        if not isinstance(self.output, ResponseComputerToolCallOutputItem):
            return ()
        image_reference = self.output.output.file_id or self.output.output.image_url or "data:"
        return (
            ()
            if image_reference.startswith("data:")
            else (Chunk(content=image_reference, title="screenshot"),)
        )


# -------------------------------------------------------------------------------- searches
# Web search, which finds pages, and file search, document finder and file reader, which find places in files.


@record
class _WebSearchArguments(ResponsesRecord):
    action: WebSearchAction


@attrs.frozen(repr=False)
class WebSearchToolCall(ResponseToolCall[ResponseFunctionWebSearch]):
    """A search on the web: it looks for pages, opens one, or looks for a pattern in one.

    OpenAI names the pages. Their text is available if the sources are :class:`WebSearchResult`.
    """

    item_type = ResponseFunctionWebSearch
    chat_name = "web_search"
    progression = SEARCHING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are those of an action, or a ``query``."""
        action = read_arguments(
            tool_call, _WebSearchArguments, cls, lambda data: {"action": {"type": "search", **data}}
        ).action
        if isinstance(action, ActionSearch) and action.sources is not None:
            raise wrong_arguments(tool_call, "sources are what was found, not asked for")
        status = CallStatus.IN_PROGRESS
        return cls(ResponseFunctionWebSearch(id=tool_call.id, action=action, status=status))

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`. A search is written without a ``type``."""
        action = self.item.action
        if action is None:
            raise self._problem("has no action yet")
        if isinstance(action, ActionSearch):
            action = action.replace(sources=None, presence=(action.presence - {"sources"}) | {"type"})
        return write_call(self, action)

    def chunkify(self) -> tuple[Chunk, ...]:
        """Return a chunk for each page. An opened page has one after it was opened."""
        action = self.item.action
        if isinstance(action, ActionOpenPage | ActionFind):
            citation = url_citation(action.url) if self.status in {None, "completed"} else None
            return () if citation is None else (Chunk(content="", annotation=citation),)
        chunks = []
        for index, source in enumerate(self._sources()):
            if isinstance(source, WebSearchResult):
                citation = url_citation(source.url, source.title)
                chunks.append(
                    Chunk(content=source.text or "", title=source.title, annotation=citation, index=index)
                )
            elif isinstance(source, WebSearchURL):
                chunks.append(Chunk(content="", annotation=url_citation(source.url), index=index))
        return tuple(chunks)

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`. Sources other than pages stay."""
        remaining_chunks = {chunk.index: chunk for chunk in chunks}
        page_indexes = {chunk.index for chunk in self.chunkify()}
        action = self.item.action
        if not isinstance(action, ActionSearch) or not action.sources:
            return self
        sources = tuple(
            with_text(source, remaining_chunks[index].content)
            if isinstance(source, WebSearchResult)
            else source
            for index, source in enumerate(action.sources)
            if index in remaining_chunks or index not in page_indexes
        )
        return self._having(action=action.replace(sources=sources))

    def _sources(self) -> tuple[WebSearchSource, ...]:
        return (self.item.action.sources or ()) if isinstance(self.item.action, ActionSearch) else ()


def url_citation(url: str | None, title: str | None = None) -> CitationAnnotation | None:
    """Return the citation of the page at *url*, or ``None`` without a URL."""
    return AnnotationURLCitation(url=url, title=title) if url else None


class _FindingCall(_ArgumentsCall[ItemT]):
    """A call whose item has its ``results``."""

    def chunkify(self) -> tuple[Chunk, ...]:
        """A chunk for each result."""
        results: Any = enumerate(getattr(self.item, "results", None) or ())
        return tuple(attrs.evolve(self._chunk(result), index=index) for index, result in results)

    @abstractmethod
    def _chunk(self, result: Any) -> Chunk:
        """The chunk of *result*."""

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`.

        Raises:
            ToolCallError: a chunk does not belong to any of the results.
        """
        results: Any = getattr(self.item, "results", None)
        if results is None:
            return self
        if any(chunk.index >= len(results) for chunk in chunks):
            raise ToolCallError("a chunk that the call did not find")
        return self._having(results=tuple(with_text(results[chunk.index], chunk.content) for chunk in chunks))


@record
class _FileSearchArguments(ResponsesRecord):
    queries: tuple[str, ...]


@attrs.frozen(repr=False)
class FileSearchToolCall(_FindingCall[ResponseFileSearchToolCall]):
    """A search in vector stores. Its arguments are ``queries``.

    Results with different pages or positions are different sources if their ``attributes``, or their extra fields, have
    an integer ``page_number`` or ``document_position``. Otherwise all pieces of a file are one source.
    """

    item_type = ResponseFileSearchToolCall
    chat_name = "file_search"
    progression = SEARCHING
    arguments = _FileSearchArguments

    def _chunk(self, result: FileSearchResult) -> Chunk:
        citation = _file_citation(result)
        return Chunk(
            content=result.text or "", title=result.filename, annotation=citation, score=result.score
        )


def _file_citation(result: FileSearchResult | FoundDocument) -> AnnotationFileCitation | None:
    if result.file_id is None:
        return None
    return AnnotationFileCitation(
        file_id=result.file_id,
        filename=result.filename,
        page_number=_place(result, "page_number"),
        document_position=_place(result, "document_position"),
    )


def _place(result: FileSearchResult | FoundDocument, name: str) -> int | None:
    attributes: Mapping[str, Any] = result.attributes or {}
    for value in (attributes.get(name), result.extensions.get(name)):
        if type(value) is int or (type(value) is float and value.is_integer()):
            return int(value)
    return None


@record
class _DocumentFinderArguments(ResponsesRecord):
    queries: tuple[str, ...]
    collections: tuple[str, ...] | None = None


@attrs.frozen(repr=False)
class DocumentFinderToolCall(_FindingCall[ResponseDocumentFinderToolCall]):
    """A search for documents across collections. Its arguments are ``queries`` and ``collections``."""

    item_type = ResponseDocumentFinderToolCall
    chat_name = "document_finder"
    progression = SEARCHING
    arguments = _DocumentFinderArguments

    def _chunk(self, result: FoundDocument) -> Chunk:
        citation = _file_citation(result) or url_citation(result.url, result.title)
        title = result.title or result.filename
        return Chunk(content=result.text or "", title=title, annotation=citation, score=result.score)


@record
class _FileReaderArguments(ResponsesRecord):
    file_id: str
    first_page: int | None = None
    last_page: int | None = None


@attrs.frozen(repr=False)
class FileReaderToolCall(_FindingCall[ResponseFileReaderToolCall]):
    """A reading of a file. Its arguments are ``file_id`` and two pages."""

    item_type = ResponseFileReaderToolCall
    chat_name = "file_reader"
    progression = RUNNING
    arguments = _FileReaderArguments

    def _chunk(self, result: FilePage) -> Chunk:
        citation = AnnotationFileCitation(
            file_id=self.item.file_id,
            filename=self.item.filename,
            page_number=result.page_number,
            document_position=result.document_position,
        )
        return Chunk(content=result.text, title=self.item.filename, annotation=citation)


# -------------------------------------------------------------------------------- registry
# The registry of tools, by their items and by their names in chat.


C = TypeVar("C", bound=type[ResponseToolCall[Any]])
AnyToolCall = ResponseToolCall[Any]


class ToolCallRegistry:
    """The tools by item type and by chat name."""

    def __init__(self) -> None:
        self._by_tool: dict[str, type[AnyToolCall]] = {}
        self._by_chat_name: dict[str, type[AnyToolCall]] = {}
        self._function_class: type[AnyToolCall] | None = None

    def register(self, cls: C) -> C:
        """Add a tool, and read its items. A tool with the same items is replaced. Usable as a decorator.

        A tool without a ``chat_name`` gets all functions with unregistered names.

        Raises:
            ToolCallError: another tool has its ``chat_name``.
            TypeError: its items have no literal ``type``.
        """
        register_item(cls.item_type)
        tool, name = cls.tool(), cls.chat_name
        other_class = self._function_class if name is None else self._by_chat_name.get(name)
        if other_class is not None and other_class.tool() != tool:
            raise ToolCallError(f"the chat name {name!r} is that of {other_class.tool()}", tool=tool)
        replaced_class = self._by_tool.get(tool)
        if replaced_class is not None and replaced_class.chat_name is not None:
            del self._by_chat_name[replaced_class.chat_name]
        self._by_tool[tool] = cls
        if name is None:
            self._function_class = cls
        else:
            self._by_chat_name[name] = cls
        return cls

    def get(self, tool: str | None) -> type[AnyToolCall] | None:
        """Return the tool with items of this ``type``, or ``None`` if none is registered."""
        return self._by_tool.get(tool or "")

    def from_item(self, item: Item, output: Item | None = None) -> AnyToolCall:
        """Return the call of *item*, answered by *output*.

        Raises:
            ToolCallError: no tool with such items is registered, or *output* does not answer it.
        """
        item_type = getattr(item, "type", None)
        cls = self.get(item_type)
        if cls is None:
            raise ToolCallError(f"no tool has items of type {clean_message(str(item_type), 60)!r}")
        return cls(item, output)

    def from_chat_tool_call(self, tool_call: ToolCall) -> AnyToolCall:
        """Return the call of a chat's *tool_call*: of the tool with its name, else of a function.

        Raises:
            ToolCallError: no tool has its name, and there is no tool for other names.
            ToolCallArgumentsError: its arguments do not match the tool.
        """
        cls = self._by_chat_name.get(tool_call.name, self._function_class)
        if cls is None:
            raise ToolCallError("no tool has such a name in chat", call_id=tool_call.id)
        return cls.from_chat_tool_call(tool_call)

    def tool_calls_of(self, items: Iterable[Item]) -> tuple[AnyToolCall, ...]:
        """Return the calls among *items*, in order, each with the output that answers it.

        Outputs answer the calls with their ``call_id`` in order. Items of unregistered tools,
        and items other than calls, are skipped.

        Raises:
            ToolCallError: an output answers no call.
        """
        items = tuple(items)
        answers: dict[tuple[type[Item], str], deque[Item]] = {}
        output_types = {cls.output_type for cls in self._by_tool.values() if cls.output_type is not None}
        for item in items:
            call_id = getattr(item, "call_id", None)
            if type(item) in output_types and call_id is not None:
                answers.setdefault((type(item), call_id), deque()).append(item)
        calls = []
        for item in items:
            cls = self.get(getattr(item, "type", None))
            if cls is not None and isinstance(item, cls.item_type):
                key = (cls.output_type, getattr(item, "call_id", None))
                waiting_answers = answers.get(key)  # type: ignore[arg-type]  # without an output type there is none
                calls.append(cls(item, waiting_answers.popleft() if waiting_answers else None))
        for waiting_answers in answers.values():
            for item in waiting_answers:
                raise ToolCallError(
                    "answers no call",
                    tool=getattr(item, "type", None),
                    call_id=getattr(item, "call_id", None),
                )
        return tuple(calls)


tool_registry = ToolCallRegistry()
"""The tools that are used where no other registry is named."""


for _tool in (
    FunctionToolCall,
    ComputerToolCall,
    WebSearchToolCall,
    FileSearchToolCall,
    DocumentFinderToolCall,
    FileReaderToolCall,
):
    tool_registry.register(_tool)


def register_tool_call(cls: C) -> C:
    """Add a tool to :data:`tool_registry`, see :meth:`ToolCallRegistry.register`."""
    return tool_registry.register(cls)


def tool_calls_of(items: Iterable[Item]) -> tuple[ResponseToolCall[Any], ...]:
    """Return the calls of tools in :data:`tool_registry`, see :meth:`ToolCallRegistry.tool_calls_of`."""
    return tool_registry.tool_calls_of(items)

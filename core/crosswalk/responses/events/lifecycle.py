"""Events of the response as a whole, of its items and of the connection."""

from typing import Any, Literal, TypeAlias

from crosswalk.responses.details import ErrorDetail
from crosswalk.responses.events.event import Event
from crosswalk.responses.function_calls import ResponseFunctionToolCallOutputItem
from crosswalk.responses.item import UnknownItem
from crosswalk.responses.messages import EasyInputMessage, InputMessage
from crosswalk.responses.records import Record, record
from crosswalk.responses.response import Response
from crosswalk.responses.unions import ResponseOutputItem


@record
class ResponseEvent(Event):
    """A new state of the response as a whole.

    Attributes:
        response: the response so far. Fields may be missing before the end.
    """

    response: Response


@record
class ResponseCreatedEvent(ResponseEvent):
    """The response exists."""

    type: Literal["response.created"] = "response.created"


@record
class ResponseQueuedEvent(ResponseEvent):
    """The response waits."""

    type: Literal["response.queued"] = "response.queued"


@record
class ResponseInProgressEvent(ResponseEvent):
    """The model works."""

    type: Literal["response.in_progress"] = "response.in_progress"


@record
class ResponseCompletedEvent(ResponseEvent):
    """The response is complete, and the stream ends."""

    type: Literal["response.completed"] = "response.completed"


@record
class ResponseIncompleteEvent(ResponseEvent):
    """The response ends before its time, and the stream ends."""

    type: Literal["response.incomplete"] = "response.incomplete"


@record
class ResponseFailedEvent(ResponseEvent):
    """The response failed, and the stream ends."""

    type: Literal["response.failed"] = "response.failed"


@record
class ResponseCancelledEvent(ResponseEvent):
    """The response was cancelled, and the stream ends."""

    type: Literal["response.cancelled"] = "response.cancelled"


@record
class ResponseKeepAliveEvent(Event):
    """A sign that the connection is alive. OpenAI sends it while a model works."""

    type: Literal["keepalive"] = "keepalive"


@record
class ResponseOutputItemAddedEvent(Event):
    """An item begins.

    Attributes:
        output_index: its position in the output. Some servers send none.
        item: the item so far.
    """

    type: Literal["response.output_item.added"] = "response.output_item.added"
    output_index: int | None = None
    item: ResponseOutputItem


@record
class ResponseOutputItemDoneEvent(Event):
    """An item ends.

    Attributes:
        output_index: its position in the output. Some servers send none.
        item: the whole item.
    """

    type: Literal["response.output_item.done"] = "response.output_item.done"
    output_index: int | None = None
    item: ResponseOutputItem


@record
class ResponseErrorEvent(Event):
    """The server failed, and the stream ends. Some servers, and WebSockets, nest the fields in ``error``.

    Attributes:
        type: ``error``. Some servers leave it out.
        message: the description.
        code: the error code.
        param: the parameter at fault.
        error: the same fields, nested.
        status: the HTTP status, on a WebSocket.
    """

    type: Literal["error"] | None = "error"
    message: str | None = None
    code: str | int | None = None
    param: str | None = None
    error: ErrorDetail | str | None = None
    status: int | None = None

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Whether an event without a type is one."""
        return "error" in data


@record
class Steer(Record):
    """Input that is to join a response while it is made, on a WebSocket.

    Attributes:
        id: its id.
        previous_response_id: the response.
        input: the input. The server returns it if it could not join.
    """

    id: str | None = None
    previous_response_id: str
    input: (
        str
        | tuple[InputMessage | EasyInputMessage | ResponseFunctionToolCallOutputItem | UnknownItem, ...]
        | None
    ) = None


@record
class RequiredInput(Record):
    """Something that the server waits for.

    Attributes:
        type: the item to send, such as ``function_call_output``.
        call_id: the call to answer.
        name: the function that was called.
        execution: ``client``, for a tool search.
        approval_request_id: the approval to give.
    """

    type: str
    call_id: str | None = None
    name: str | None = None
    execution: str | None = None
    approval_request_id: str | None = None


@record
class SteerError(Record):
    """Why input could not join.

    Attributes:
        type: ``invalid_request_error``.
        code: the error code.
        message: the description.
    """

    type: str
    code: str
    message: str


@record
class ResponseSteerAcceptedEvent(Event):
    """Input was taken, on a WebSocket."""

    type: Literal["response.steer.accepted"] = "response.steer.accepted"
    steer: Steer


@record
class ResponseSteerPendingEvent(Event):
    """Input waits, on a WebSocket.

    Attributes:
        steer: the input.
        reason: the reason.
        required_input: the input that it waits for.
    """

    type: Literal["response.steer.pending"] = "response.steer.pending"
    steer: Steer
    reason: str
    required_input: tuple[RequiredInput, ...] = ()


@record
class ResponseSteerFailedEvent(Event):
    """Input could not join, on a WebSocket."""

    type: Literal["response.steer.failed"] = "response.steer.failed"
    steer: Steer
    error: SteerError


LifecycleEvent: TypeAlias = (
    ResponseCreatedEvent
    | ResponseQueuedEvent
    | ResponseInProgressEvent
    | ResponseCompletedEvent
    | ResponseIncompleteEvent
    | ResponseFailedEvent
    | ResponseCancelledEvent
    | ResponseKeepAliveEvent
    | ResponseOutputItemAddedEvent
    | ResponseOutputItemDoneEvent
    | ResponseErrorEvent
    | ResponseSteerAcceptedEvent
    | ResponseSteerPendingEvent
    | ResponseSteerFailedEvent
)
"""An event of the response as a whole, or of an item."""

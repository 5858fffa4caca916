"""The events of a stream (provider document "OpenAI Responses", section 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.events.calls import (
        ResponseApplyPatchCallOperationDiffDeltaEvent as ResponseApplyPatchCallOperationDiffDeltaEvent,
        ResponseApplyPatchCallOperationDiffDoneEvent as ResponseApplyPatchCallOperationDiffDoneEvent,
        ResponseCodeInterpreterCallCodeDeltaEvent as ResponseCodeInterpreterCallCodeDeltaEvent,
        ResponseCodeInterpreterCallCodeDoneEvent as ResponseCodeInterpreterCallCodeDoneEvent,
        ResponseCodeInterpreterCallCompletedEvent as ResponseCodeInterpreterCallCompletedEvent,
        ResponseCodeInterpreterCallInProgressEvent as ResponseCodeInterpreterCallInProgressEvent,
        ResponseCodeInterpreterCallInterpretingEvent as ResponseCodeInterpreterCallInterpretingEvent,
        ResponseCompactionCompactingEvent as ResponseCompactionCompactingEvent,
        ResponseCustomToolCallInputDeltaEvent as ResponseCustomToolCallInputDeltaEvent,
        ResponseCustomToolCallInputDoneEvent as ResponseCustomToolCallInputDoneEvent,
        ResponseFileSearchCallCompletedEvent as ResponseFileSearchCallCompletedEvent,
        ResponseFileSearchCallInProgressEvent as ResponseFileSearchCallInProgressEvent,
        ResponseFileSearchCallSearchingEvent as ResponseFileSearchCallSearchingEvent,
        ResponseFunctionCallArgumentsDeltaEvent as ResponseFunctionCallArgumentsDeltaEvent,
        ResponseFunctionCallArgumentsDoneEvent as ResponseFunctionCallArgumentsDoneEvent,
        ResponseImageGenCallCompletedEvent as ResponseImageGenCallCompletedEvent,
        ResponseImageGenCallGeneratingEvent as ResponseImageGenCallGeneratingEvent,
        ResponseImageGenCallInProgressEvent as ResponseImageGenCallInProgressEvent,
        ResponseImageGenCallPartialImageEvent as ResponseImageGenCallPartialImageEvent,
        ResponseMcpCallArgumentsDeltaEvent as ResponseMcpCallArgumentsDeltaEvent,
        ResponseMcpCallArgumentsDoneEvent as ResponseMcpCallArgumentsDoneEvent,
        ResponseMcpCallCompletedEvent as ResponseMcpCallCompletedEvent,
        ResponseMcpCallFailedEvent as ResponseMcpCallFailedEvent,
        ResponseMcpCallInProgressEvent as ResponseMcpCallInProgressEvent,
        ResponseMcpListToolsCompletedEvent as ResponseMcpListToolsCompletedEvent,
        ResponseMcpListToolsFailedEvent as ResponseMcpListToolsFailedEvent,
        ResponseMcpListToolsInProgressEvent as ResponseMcpListToolsInProgressEvent,
        ResponseShellCallCommandAddedEvent as ResponseShellCallCommandAddedEvent,
        ResponseShellCallCommandDeltaEvent as ResponseShellCallCommandDeltaEvent,
        ResponseShellCallCommandDoneEvent as ResponseShellCallCommandDoneEvent,
        ResponseShellCallOutputContentDeltaEvent as ResponseShellCallOutputContentDeltaEvent,
        ResponseShellCallOutputContentDoneEvent as ResponseShellCallOutputContentDoneEvent,
        ResponseToolStatusEvent as ResponseToolStatusEvent,
        ResponseWebSearchCallCompletedEvent as ResponseWebSearchCallCompletedEvent,
        ResponseWebSearchCallInProgressEvent as ResponseWebSearchCallInProgressEvent,
        ResponseWebSearchCallSearchingEvent as ResponseWebSearchCallSearchingEvent,
        ShellCommandEvent as ShellCommandEvent,
        ShellOutputDelta as ShellOutputDelta,
    )
    from crosswalk.responses.events.event import (
        Event as Event,
        ItemEvent as ItemEvent,
        PartEvent as PartEvent,
        UnknownEvent as UnknownEvent,
    )
    from crosswalk.responses.events.lifecycle import (
        RequiredInput as RequiredInput,
        ResponseCancelledEvent as ResponseCancelledEvent,
        ResponseCompletedEvent as ResponseCompletedEvent,
        ResponseCreatedEvent as ResponseCreatedEvent,
        ResponseErrorEvent as ResponseErrorEvent,
        ResponseEvent as ResponseEvent,
        ResponseFailedEvent as ResponseFailedEvent,
        ResponseIncompleteEvent as ResponseIncompleteEvent,
        ResponseInProgressEvent as ResponseInProgressEvent,
        ResponseKeepAliveEvent as ResponseKeepAliveEvent,
        ResponseOutputItemAddedEvent as ResponseOutputItemAddedEvent,
        ResponseOutputItemDoneEvent as ResponseOutputItemDoneEvent,
        ResponseQueuedEvent as ResponseQueuedEvent,
        ResponseSteerAcceptedEvent as ResponseSteerAcceptedEvent,
        ResponseSteerFailedEvent as ResponseSteerFailedEvent,
        ResponseSteerPendingEvent as ResponseSteerPendingEvent,
        Steer as Steer,
        SteerError as SteerError,
    )
    from crosswalk.responses.events.text import (
        ResponseAudioDeltaEvent as ResponseAudioDeltaEvent,
        ResponseAudioDoneEvent as ResponseAudioDoneEvent,
        ResponseAudioTranscriptDeltaEvent as ResponseAudioTranscriptDeltaEvent,
        ResponseAudioTranscriptDoneEvent as ResponseAudioTranscriptDoneEvent,
        ResponseContentPartAddedEvent as ResponseContentPartAddedEvent,
        ResponseContentPartDoneEvent as ResponseContentPartDoneEvent,
        ResponseOutputTextAnnotationAddedEvent as ResponseOutputTextAnnotationAddedEvent,
        ResponseReasoningPartAddedEvent as ResponseReasoningPartAddedEvent,
        ResponseReasoningPartDoneEvent as ResponseReasoningPartDoneEvent,
        ResponseReasoningSummaryPartAddedEvent as ResponseReasoningSummaryPartAddedEvent,
        ResponseReasoningSummaryPartDoneEvent as ResponseReasoningSummaryPartDoneEvent,
        ResponseReasoningSummaryTextDeltaEvent as ResponseReasoningSummaryTextDeltaEvent,
        ResponseReasoningSummaryTextDoneEvent as ResponseReasoningSummaryTextDoneEvent,
        ResponseReasoningTextDeltaEvent as ResponseReasoningTextDeltaEvent,
        ResponseReasoningTextDoneEvent as ResponseReasoningTextDoneEvent,
        ResponseRefusalDeltaEvent as ResponseRefusalDeltaEvent,
        ResponseRefusalDoneEvent as ResponseRefusalDoneEvent,
        ResponseTextDeltaEvent as ResponseTextDeltaEvent,
        ResponseTextDoneEvent as ResponseTextDoneEvent,
        SummaryEvent as SummaryEvent,
    )
    from crosswalk.responses.events.union import (
        KnownStreamEvent as KnownStreamEvent,
        ResponseStreamEvent as ResponseStreamEvent,
        register_event as register_event,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.events.calls": (
                "ResponseApplyPatchCallOperationDiffDeltaEvent ResponseApplyPatchCallOperationDiffDoneEvent "
                "ResponseCodeInterpreterCallCodeDeltaEvent ResponseCodeInterpreterCallCodeDoneEvent "
                "ResponseCodeInterpreterCallCompletedEvent ResponseCodeInterpreterCallInProgressEvent "
                "ResponseCodeInterpreterCallInterpretingEvent ResponseCompactionCompactingEvent "
                "ResponseCustomToolCallInputDeltaEvent ResponseCustomToolCallInputDoneEvent "
                "ResponseFileSearchCallCompletedEvent ResponseFileSearchCallInProgressEvent "
                "ResponseFileSearchCallSearchingEvent ResponseFunctionCallArgumentsDeltaEvent "
                "ResponseFunctionCallArgumentsDoneEvent ResponseImageGenCallCompletedEvent "
                "ResponseImageGenCallGeneratingEvent ResponseImageGenCallInProgressEvent "
                "ResponseImageGenCallPartialImageEvent ResponseMcpCallArgumentsDeltaEvent "
                "ResponseMcpCallArgumentsDoneEvent ResponseMcpCallCompletedEvent ResponseMcpCallFailedEvent "
                "ResponseMcpCallInProgressEvent ResponseMcpListToolsCompletedEvent "
                "ResponseMcpListToolsFailedEvent ResponseMcpListToolsInProgressEvent "
                "ResponseShellCallCommandAddedEvent ResponseShellCallCommandDeltaEvent "
                "ResponseShellCallCommandDoneEvent ResponseShellCallOutputContentDeltaEvent "
                "ResponseShellCallOutputContentDoneEvent ResponseToolStatusEvent "
                "ResponseWebSearchCallCompletedEvent ResponseWebSearchCallInProgressEvent "
                "ResponseWebSearchCallSearchingEvent ShellCommandEvent ShellOutputDelta"
            ),
            "crosswalk.responses.events.event": "Event ItemEvent PartEvent UnknownEvent",
            "crosswalk.responses.events.lifecycle": (
                "RequiredInput ResponseCancelledEvent ResponseCompletedEvent ResponseCreatedEvent "
                "ResponseErrorEvent ResponseEvent ResponseFailedEvent ResponseInProgressEvent "
                "ResponseIncompleteEvent ResponseKeepAliveEvent ResponseOutputItemAddedEvent "
                "ResponseOutputItemDoneEvent ResponseQueuedEvent ResponseSteerAcceptedEvent "
                "ResponseSteerFailedEvent ResponseSteerPendingEvent Steer SteerError"
            ),
            "crosswalk.responses.events.text": (
                "ResponseAudioDeltaEvent ResponseAudioDoneEvent ResponseAudioTranscriptDeltaEvent "
                "ResponseAudioTranscriptDoneEvent ResponseContentPartAddedEvent "
                "ResponseContentPartDoneEvent ResponseOutputTextAnnotationAddedEvent "
                "ResponseReasoningPartAddedEvent ResponseReasoningPartDoneEvent "
                "ResponseReasoningSummaryPartAddedEvent ResponseReasoningSummaryPartDoneEvent "
                "ResponseReasoningSummaryTextDeltaEvent ResponseReasoningSummaryTextDoneEvent "
                "ResponseReasoningTextDeltaEvent ResponseReasoningTextDoneEvent ResponseRefusalDeltaEvent "
                "ResponseRefusalDoneEvent ResponseTextDeltaEvent ResponseTextDoneEvent SummaryEvent"
            ),
            "crosswalk.responses.events.union": "KnownStreamEvent ResponseStreamEvent register_event",
        },
    )

"""The events of a stream (provider document "OpenAI Responses", section 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.events.answer import (
        Event as Event,
        ItemEvent as ItemEvent,
        PartEvent as PartEvent,
        RequiredInput as RequiredInput,
        ResponseAudioDeltaEvent as ResponseAudioDeltaEvent,
        ResponseAudioDoneEvent as ResponseAudioDoneEvent,
        ResponseAudioTranscriptDeltaEvent as ResponseAudioTranscriptDeltaEvent,
        ResponseAudioTranscriptDoneEvent as ResponseAudioTranscriptDoneEvent,
        ResponseCancelledEvent as ResponseCancelledEvent,
        ResponseCompletedEvent as ResponseCompletedEvent,
        ResponseContentPartAddedEvent as ResponseContentPartAddedEvent,
        ResponseContentPartDoneEvent as ResponseContentPartDoneEvent,
        ResponseCreatedEvent as ResponseCreatedEvent,
        ResponseErrorEvent as ResponseErrorEvent,
        ResponseEvent as ResponseEvent,
        ResponseFailedEvent as ResponseFailedEvent,
        ResponseIncompleteEvent as ResponseIncompleteEvent,
        ResponseInProgressEvent as ResponseInProgressEvent,
        ResponseKeepAliveEvent as ResponseKeepAliveEvent,
        ResponseOutputItemAddedEvent as ResponseOutputItemAddedEvent,
        ResponseOutputItemDoneEvent as ResponseOutputItemDoneEvent,
        ResponseOutputTextAnnotationAddedEvent as ResponseOutputTextAnnotationAddedEvent,
        ResponseQueuedEvent as ResponseQueuedEvent,
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
        ResponseSteerAcceptedEvent as ResponseSteerAcceptedEvent,
        ResponseSteerFailedEvent as ResponseSteerFailedEvent,
        ResponseSteerPendingEvent as ResponseSteerPendingEvent,
        ResponseTextDeltaEvent as ResponseTextDeltaEvent,
        ResponseTextDoneEvent as ResponseTextDoneEvent,
        Steer as Steer,
        SteerError as SteerError,
        SummaryEvent as SummaryEvent,
        UnknownEvent as UnknownEvent,
    )
    from crosswalk.responses.events.calls import (
        KnownStreamEvent as KnownStreamEvent,
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
        ResponseStreamEvent as ResponseStreamEvent,
        ResponseToolStatusEvent as ResponseToolStatusEvent,
        ResponseWebSearchCallCompletedEvent as ResponseWebSearchCallCompletedEvent,
        ResponseWebSearchCallInProgressEvent as ResponseWebSearchCallInProgressEvent,
        ResponseWebSearchCallSearchingEvent as ResponseWebSearchCallSearchingEvent,
        ShellCommandEvent as ShellCommandEvent,
        ShellOutputDelta as ShellOutputDelta,
        register_event as register_event,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.events.answer": (
                "Event ItemEvent PartEvent RequiredInput ResponseAudioDeltaEvent ResponseAudioDoneEvent "
                "ResponseAudioTranscriptDeltaEvent ResponseAudioTranscriptDoneEvent ResponseCancelledEvent "
                "ResponseCompletedEvent ResponseContentPartAddedEvent ResponseContentPartDoneEvent "
                "ResponseCreatedEvent ResponseErrorEvent ResponseEvent ResponseFailedEvent "
                "ResponseInProgressEvent ResponseIncompleteEvent ResponseKeepAliveEvent "
                "ResponseOutputItemAddedEvent ResponseOutputItemDoneEvent "
                "ResponseOutputTextAnnotationAddedEvent ResponseQueuedEvent ResponseReasoningPartAddedEvent "
                "ResponseReasoningPartDoneEvent ResponseReasoningSummaryPartAddedEvent "
                "ResponseReasoningSummaryPartDoneEvent ResponseReasoningSummaryTextDeltaEvent "
                "ResponseReasoningSummaryTextDoneEvent ResponseReasoningTextDeltaEvent "
                "ResponseReasoningTextDoneEvent ResponseRefusalDeltaEvent ResponseRefusalDoneEvent "
                "ResponseSteerAcceptedEvent ResponseSteerFailedEvent ResponseSteerPendingEvent "
                "ResponseTextDeltaEvent ResponseTextDoneEvent Steer SteerError SummaryEvent UnknownEvent"
            ),
            "crosswalk.responses.events.calls": (
                "KnownStreamEvent ResponseApplyPatchCallOperationDiffDeltaEvent "
                "ResponseApplyPatchCallOperationDiffDoneEvent ResponseCodeInterpreterCallCodeDeltaEvent "
                "ResponseCodeInterpreterCallCodeDoneEvent ResponseCodeInterpreterCallCompletedEvent "
                "ResponseCodeInterpreterCallInProgressEvent ResponseCodeInterpreterCallInterpretingEvent "
                "ResponseCompactionCompactingEvent ResponseCustomToolCallInputDeltaEvent "
                "ResponseCustomToolCallInputDoneEvent ResponseFileSearchCallCompletedEvent "
                "ResponseFileSearchCallInProgressEvent ResponseFileSearchCallSearchingEvent "
                "ResponseFunctionCallArgumentsDeltaEvent ResponseFunctionCallArgumentsDoneEvent "
                "ResponseImageGenCallCompletedEvent ResponseImageGenCallGeneratingEvent "
                "ResponseImageGenCallInProgressEvent ResponseImageGenCallPartialImageEvent "
                "ResponseMcpCallArgumentsDeltaEvent ResponseMcpCallArgumentsDoneEvent "
                "ResponseMcpCallCompletedEvent ResponseMcpCallFailedEvent ResponseMcpCallInProgressEvent "
                "ResponseMcpListToolsCompletedEvent ResponseMcpListToolsFailedEvent "
                "ResponseMcpListToolsInProgressEvent ResponseShellCallCommandAddedEvent "
                "ResponseShellCallCommandDeltaEvent ResponseShellCallCommandDoneEvent "
                "ResponseShellCallOutputContentDeltaEvent ResponseShellCallOutputContentDoneEvent "
                "ResponseStreamEvent ResponseToolStatusEvent ResponseWebSearchCallCompletedEvent "
                "ResponseWebSearchCallInProgressEvent ResponseWebSearchCallSearchingEvent ShellCommandEvent "
                "ShellOutputDelta register_event"
            ),
        },
    )

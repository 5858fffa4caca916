"""The Responses API as types: responses, stream events and requests, without dropping a field.

Every object of the API is a :class:`ResponsesRecord`, an immutable attrs value. ``None`` means that the field was not
sent, or sent as ``null``. ``presence`` distinguishes the two. Fields without an attribute are in ``extensions``.
:func:`to_json` writes the JSON value that :func:`parse_response`, :func:`parse_event`, :func:`parse_item` and
:func:`parse` read. Class names are those of the official SDK. A field named like a keyword has an underscore
(``async_``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.accumulator import (
        ResponseAccumulator as ResponseAccumulator,
        ResponseSnapshot as ResponseSnapshot,
        snapshots as snapshots,
    )
    from crosswalk.responses.answer_events import (
        Event as Event,
        ItemEvent as ItemEvent,
        PartEvent as PartEvent,
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
        SummaryEvent as SummaryEvent,
        UnknownEvent as UnknownEvent,
    )
    from crosswalk.responses.citations import (
        Chunk as Chunk,
        CitationAnnotation as CitationAnnotation,
        CitationMarker as CitationMarker,
        CompressionMode as CompressionMode,
        CompressionReport as CompressionReport,
        NumberedSource as NumberedSource,
    )
    from crosswalk.responses.cited import (
        CitedResponse as CitedResponse,
    )
    from crosswalk.responses.content import (
        Annotation as Annotation,
        AnnotationContainerFileCitation as AnnotationContainerFileCitation,
        AnnotationFileCitation as AnnotationFileCitation,
        AnnotationFilePath as AnnotationFilePath,
        AnnotationURLCitation as AnnotationURLCitation,
        Conversation as Conversation,
        ErrorBody as ErrorBody,
        ErrorDetail as ErrorDetail,
        IncompleteDetails as IncompleteDetails,
        InputContent as InputContent,
        Logprob as Logprob,
        OutputContent as OutputContent,
        Reasoning as Reasoning,
        ReasoningText as ReasoningText,
        ResponseError as ResponseError,
        ResponseFormatJSONObject as ResponseFormatJSONObject,
        ResponseFormatText as ResponseFormatText,
        ResponseFormatTextConfig as ResponseFormatTextConfig,
        ResponseFormatTextJSONSchemaConfig as ResponseFormatTextJSONSchemaConfig,
        ResponseInputFile as ResponseInputFile,
        ResponseInputImage as ResponseInputImage,
        ResponseInputText as ResponseInputText,
        ResponseOutputRefusal as ResponseOutputRefusal,
        ResponseOutputText as ResponseOutputText,
        ResponsePrompt as ResponsePrompt,
        ResponseTextConfig as ResponseTextConfig,
        StreamedPart as StreamedPart,
        SummaryText as SummaryText,
        TopLogprob as TopLogprob,
        UnknownAnnotation as UnknownAnnotation,
        UnknownPart as UnknownPart,
        UnknownTextFormat as UnknownTextFormat,
    )
    from crosswalk.responses.display import (
        DisplayFactory as DisplayFactory,
        DisplayRegistry as DisplayRegistry,
        DisplayStrategy as DisplayStrategy,
        JSONLinesDisplay as JSONLinesDisplay,
        LiveDisplay as LiveDisplay,
        PlainTextDisplay as PlainTextDisplay,
        UnknownDisplayError as UnknownDisplayError,
        Update as Update,
        UpdateKind as UpdateKind,
        displays as displays,
    )
    from crosswalk.responses.events import (
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
    from crosswalk.responses.function_tools import (
        CustomTool as CustomTool,
        FunctionTool as FunctionTool,
        NamespaceTool as NamespaceTool,
        ToolChoice as ToolChoice,
        ToolChoiceAllowed as ToolChoiceAllowed,
        ToolChoiceCustom as ToolChoiceCustom,
        ToolChoiceFunction as ToolChoiceFunction,
        ToolChoiceMcp as ToolChoiceMcp,
        ToolChoiceTypes as ToolChoiceTypes,
        UnknownTool as UnknownTool,
        UnknownToolChoice as UnknownToolChoice,
    )
    from crosswalk.responses.items import (
        AdditionalTools as AdditionalTools,
        Click as Click,
        CompactionTrigger as CompactionTrigger,
        ComputerAction as ComputerAction,
        DoubleClick as DoubleClick,
        Drag as Drag,
        DragPath as DragPath,
        ItemReference as ItemReference,
        Keypress as Keypress,
        KnownInputItem as KnownInputItem,
        KnownOutputItem as KnownOutputItem,
        LocalShellCall as LocalShellCall,
        LocalShellCallOutput as LocalShellCallOutput,
        Move as Move,
        Program as Program,
        ProgramOutput as ProgramOutput,
        ResponseApplyPatchToolCall as ResponseApplyPatchToolCall,
        ResponseApplyPatchToolCallOutput as ResponseApplyPatchToolCallOutput,
        ResponseCompactionItem as ResponseCompactionItem,
        ResponseComputerToolCall as ResponseComputerToolCall,
        ResponseComputerToolCallOutputItem as ResponseComputerToolCallOutputItem,
        ResponseComputerToolCallOutputScreenshot as ResponseComputerToolCallOutputScreenshot,
        ResponseConfigurationUpdateItem as ResponseConfigurationUpdateItem,
        ResponseFunctionShellToolCall as ResponseFunctionShellToolCall,
        ResponseFunctionShellToolCallOutput as ResponseFunctionShellToolCallOutput,
        ResponseInputItem as ResponseInputItem,
        ResponseOutputItem as ResponseOutputItem,
        SafetyCheck as SafetyCheck,
        Screenshot as Screenshot,
        Scroll as Scroll,
        ShellAction as ShellAction,
        Type as Type,
        UnknownComputerAction as UnknownComputerAction,
        Wait as Wait,
        register_item as register_item,
    )
    from crosswalk.responses.messages import (
        EasyInputMessage as EasyInputMessage,
        InputMessage as InputMessage,
        Item as Item,
        ResponseCustomToolCall as ResponseCustomToolCall,
        ResponseCustomToolCallOutputItem as ResponseCustomToolCallOutputItem,
        ResponseFunctionToolCall as ResponseFunctionToolCall,
        ResponseFunctionToolCallOutputItem as ResponseFunctionToolCallOutputItem,
        ResponseOutputMessage as ResponseOutputMessage,
        ResponseReasoningItem as ResponseReasoningItem,
        ToolOutput as ToolOutput,
        UnknownItem as UnknownItem,
    )
    from crosswalk.responses.parsed import (
        ParsedResponse as ParsedResponse,
        ParsedText as ParsedText,
        parse_output as parse_output,
    )
    from crosswalk.responses.pipeline import (
        OnFailure as OnFailure,
        StreamHandler as StreamHandler,
        aread_events as aread_events,
        read_events as read_events,
    )
    from crosswalk.responses.processors import (
        CitationProcessor as CitationProcessor,
        EndProcessor as EndProcessor,
        EventHandler as EventHandler,
        EventKey as EventKey,
        EventRouter as EventRouter,
        PipelineError as PipelineError,
        Places as Places,
        Processor as Processor,
        ProcessorRegistry as ProcessorRegistry,
        ProgressWatch as ProgressWatch,
        StageFailure as StageFailure,
        StageKind as StageKind,
        StreamStage as StreamStage,
        ToolProcessor as ToolProcessor,
        WrittenProcessor as WrittenProcessor,
        default_processors as default_processors,
    )
    from crosswalk.responses.reading import (
        JSONInput as JSONInput,
        parse as parse,
        parse_event as parse_event,
        parse_input_item as parse_input_item,
        parse_item as parse_item,
        parse_params as parse_params,
        parse_response as parse_response,
        to_dict as to_dict,
        to_json as to_json,
    )
    from crosswalk.responses.records import (
        OnUnknown as OnUnknown,
        ResponsesRecord as ResponsesRecord,
        Unknown as Unknown,
        record as record,
    )
    from crosswalk.responses.response import (
        InputTokensDetails as InputTokensDetails,
        OutputTokensDetails as OutputTokensDetails,
        Response as Response,
        ResponseCreateParams as ResponseCreateParams,
        ResponseUsage as ResponseUsage,
    )
    from crosswalk.responses.server_calls import (
        ActionFind as ActionFind,
        ActionOpenPage as ActionOpenPage,
        ActionSearch as ActionSearch,
        CodeInterpreterImage as CodeInterpreterImage,
        CodeInterpreterLogs as CodeInterpreterLogs,
        CodeInterpreterOutput as CodeInterpreterOutput,
        FilePage as FilePage,
        FileSearchResult as FileSearchResult,
        FoundDocument as FoundDocument,
        ImageGenerationCall as ImageGenerationCall,
        McpApprovalRequest as McpApprovalRequest,
        McpApprovalResponse as McpApprovalResponse,
        McpCall as McpCall,
        McpListTools as McpListTools,
        McpTool as McpTool,
        ResponseCodeInterpreterToolCall as ResponseCodeInterpreterToolCall,
        ResponseDocumentFinderToolCall as ResponseDocumentFinderToolCall,
        ResponseFileReaderToolCall as ResponseFileReaderToolCall,
        ResponseFileSearchToolCall as ResponseFileSearchToolCall,
        ResponseFunctionWebSearch as ResponseFunctionWebSearch,
        ResponseToolSearchCall as ResponseToolSearchCall,
        ResponseToolSearchOutputItem as ResponseToolSearchOutputItem,
        ResponseXSearchToolCall as ResponseXSearchToolCall,
        UnknownCodeInterpreterOutput as UnknownCodeInterpreterOutput,
        UnknownWebSearchAction as UnknownWebSearchAction,
        UnknownWebSearchSource as UnknownWebSearchSource,
        WebSearchAction as WebSearchAction,
        WebSearchAPI as WebSearchAPI,
        WebSearchResult as WebSearchResult,
        WebSearchSource as WebSearchSource,
        WebSearchURL as WebSearchURL,
    )
    from crosswalk.responses.toolkit import (
        ComputerToolCall as ComputerToolCall,
        DocumentFinderToolCall as DocumentFinderToolCall,
        FileReaderToolCall as FileReaderToolCall,
        FileSearchToolCall as FileSearchToolCall,
        FunctionToolCall as FunctionToolCall,
        ResponseToolCall as ResponseToolCall,
        StatusProgression as StatusProgression,
        StatusProgressionError as StatusProgressionError,
        ToolCallError as ToolCallError,
        ToolCallRegistry as ToolCallRegistry,
        WebSearchToolCall as WebSearchToolCall,
        register_tool_call as register_tool_call,
        tool_calls_of as tool_calls_of,
        tool_registry as tool_registry,
    )
    from crosswalk.responses.tools import (
        ApplyPatchTool as ApplyPatchTool,
        CodeInterpreter as CodeInterpreter,
        ComputerTool as ComputerTool,
        ComputerUsePreviewTool as ComputerUsePreviewTool,
        DocumentFinderTool as DocumentFinderTool,
        FileReaderTool as FileReaderTool,
        FileSearchTool as FileSearchTool,
        FunctionShellTool as FunctionShellTool,
        ImageGeneration as ImageGeneration,
        LocalShell as LocalShell,
        Mcp as Mcp,
        ProgrammaticToolCalling as ProgrammaticToolCalling,
        Tool as Tool,
        ToolSearchTool as ToolSearchTool,
        WebSearchPreviewTool as WebSearchPreviewTool,
        WebSearchTool as WebSearchTool,
        XSearchTool as XSearchTool,
    )
    from crosswalk.responses.vocabulary import (
        CallStatus as CallStatus,
        IdKind as IdKind,
        IncompleteDetailsReason as IncompleteDetailsReason,
        InvalidIdError as InvalidIdError,
        ItemStatus as ItemStatus,
        MessageRole as MessageRole,
        NotAStreamError as NotAStreamError,
        ResponsesError as ResponsesError,
        ResponsesParseError as ResponsesParseError,
        ResponseStatus as ResponseStatus,
        ResponsesValueError as ResponsesValueError,
        SnapshotError as SnapshotError,
        UnknownTypeError as UnknownTypeError,
        check_id as check_id,
        id_kind as id_kind,
        make_id as make_id,
        new_token as new_token,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.accumulator": "ResponseAccumulator ResponseSnapshot snapshots",
            "crosswalk.responses.answer_events": (
                "Event ItemEvent PartEvent ResponseAudioDeltaEvent ResponseAudioDoneEvent "
                "ResponseAudioTranscriptDeltaEvent ResponseAudioTranscriptDoneEvent ResponseCancelledEvent "
                "ResponseCompletedEvent ResponseContentPartAddedEvent ResponseContentPartDoneEvent "
                "ResponseCreatedEvent ResponseErrorEvent ResponseEvent ResponseFailedEvent ResponseInProgressEvent "
                "ResponseIncompleteEvent ResponseKeepAliveEvent ResponseOutputItemAddedEvent "
                "ResponseOutputItemDoneEvent ResponseOutputTextAnnotationAddedEvent ResponseQueuedEvent "
                "ResponseReasoningPartAddedEvent ResponseReasoningPartDoneEvent "
                "ResponseReasoningSummaryPartAddedEvent ResponseReasoningSummaryPartDoneEvent "
                "ResponseReasoningSummaryTextDeltaEvent ResponseReasoningSummaryTextDoneEvent "
                "ResponseReasoningTextDeltaEvent ResponseReasoningTextDoneEvent ResponseRefusalDeltaEvent "
                "ResponseRefusalDoneEvent ResponseSteerAcceptedEvent ResponseSteerFailedEvent "
                "ResponseSteerPendingEvent ResponseTextDeltaEvent ResponseTextDoneEvent SummaryEvent UnknownEvent"
            ),
            "crosswalk.responses.citations": (
                "Chunk CitationAnnotation CitationMarker CompressionMode CompressionReport NumberedSource"
            ),
            "crosswalk.responses.cited": "CitedResponse",
            "crosswalk.responses.content": (
                "Annotation AnnotationContainerFileCitation AnnotationFileCitation AnnotationFilePath "
                "AnnotationURLCitation Conversation ErrorBody ErrorDetail IncompleteDetails InputContent Logprob "
                "OutputContent Reasoning ReasoningText ResponseError ResponseFormatJSONObject ResponseFormatText "
                "ResponseFormatTextConfig ResponseFormatTextJSONSchemaConfig ResponseInputFile ResponseInputImage "
                "ResponseInputText ResponseOutputRefusal ResponseOutputText ResponsePrompt ResponseTextConfig "
                "StreamedPart SummaryText TopLogprob UnknownAnnotation UnknownPart UnknownTextFormat"
            ),
            "crosswalk.responses.display": (
                "DisplayFactory DisplayRegistry DisplayStrategy JSONLinesDisplay LiveDisplay PlainTextDisplay "
                "UnknownDisplayError Update UpdateKind displays"
            ),
            "crosswalk.responses.events": (
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
                "ResponseMcpCallArgumentsDeltaEvent ResponseMcpCallArgumentsDoneEvent ResponseMcpCallCompletedEvent "
                "ResponseMcpCallFailedEvent ResponseMcpCallInProgressEvent ResponseMcpListToolsCompletedEvent "
                "ResponseMcpListToolsFailedEvent ResponseMcpListToolsInProgressEvent "
                "ResponseShellCallCommandAddedEvent ResponseShellCallCommandDeltaEvent "
                "ResponseShellCallCommandDoneEvent ResponseShellCallOutputContentDeltaEvent "
                "ResponseShellCallOutputContentDoneEvent ResponseStreamEvent ResponseToolStatusEvent "
                "ResponseWebSearchCallCompletedEvent ResponseWebSearchCallInProgressEvent "
                "ResponseWebSearchCallSearchingEvent ShellCommandEvent ShellOutputDelta register_event"
            ),
            "crosswalk.responses.function_tools": (
                "CustomTool FunctionTool NamespaceTool ToolChoice ToolChoiceAllowed ToolChoiceCustom "
                "ToolChoiceFunction ToolChoiceMcp ToolChoiceTypes UnknownTool UnknownToolChoice"
            ),
            "crosswalk.responses.items": (
                "AdditionalTools Click CompactionTrigger ComputerAction DoubleClick Drag DragPath ItemReference "
                "Keypress KnownInputItem KnownOutputItem LocalShellCall LocalShellCallOutput Move Program "
                "ProgramOutput ResponseApplyPatchToolCall ResponseApplyPatchToolCallOutput ResponseCompactionItem "
                "ResponseComputerToolCall ResponseComputerToolCallOutputItem ResponseComputerToolCallOutputScreenshot "
                "ResponseConfigurationUpdateItem ResponseFunctionShellToolCall ResponseFunctionShellToolCallOutput "
                "ResponseInputItem ResponseOutputItem SafetyCheck Screenshot Scroll ShellAction Type "
                "UnknownComputerAction Wait register_item"
            ),
            "crosswalk.responses.messages": (
                "EasyInputMessage InputMessage Item ResponseCustomToolCall ResponseCustomToolCallOutputItem "
                "ResponseFunctionToolCall ResponseFunctionToolCallOutputItem ResponseOutputMessage "
                "ResponseReasoningItem ToolOutput UnknownItem"
            ),
            "crosswalk.responses.parsed": "ParsedResponse ParsedText parse_output",
            "crosswalk.responses.pipeline": "OnFailure StreamHandler aread_events read_events",
            "crosswalk.responses.processors": (
                "CitationProcessor EndProcessor EventHandler EventKey EventRouter PipelineError Places Processor "
                "ProcessorRegistry ProgressWatch StageFailure StageKind StreamStage ToolProcessor WrittenProcessor "
                "default_processors"
            ),
            "crosswalk.responses.reading": (
                "JSONInput parse parse_event parse_input_item parse_item parse_params parse_response to_dict to_json"
            ),
            "crosswalk.responses.records": "OnUnknown ResponsesRecord Unknown record",
            "crosswalk.responses.response": (
                "InputTokensDetails OutputTokensDetails Response ResponseCreateParams ResponseUsage"
            ),
            "crosswalk.responses.server_calls": (
                "ActionFind ActionOpenPage ActionSearch CodeInterpreterImage CodeInterpreterLogs "
                "CodeInterpreterOutput FilePage FileSearchResult FoundDocument ImageGenerationCall McpApprovalRequest "
                "McpApprovalResponse McpCall McpListTools McpTool ResponseCodeInterpreterToolCall "
                "ResponseDocumentFinderToolCall ResponseFileReaderToolCall ResponseFileSearchToolCall "
                "ResponseFunctionWebSearch ResponseToolSearchCall ResponseToolSearchOutputItem "
                "ResponseXSearchToolCall UnknownCodeInterpreterOutput UnknownWebSearchAction UnknownWebSearchSource "
                "WebSearchAPI WebSearchAction WebSearchResult WebSearchSource WebSearchURL"
            ),
            "crosswalk.responses.toolkit": (
                "ComputerToolCall DocumentFinderToolCall FileReaderToolCall FileSearchToolCall FunctionToolCall "
                "ResponseToolCall StatusProgression StatusProgressionError ToolCallError ToolCallRegistry "
                "WebSearchToolCall register_tool_call tool_calls_of tool_registry"
            ),
            "crosswalk.responses.tools": (
                "ApplyPatchTool CodeInterpreter ComputerTool ComputerUsePreviewTool DocumentFinderTool FileReaderTool "
                "FileSearchTool FunctionShellTool ImageGeneration LocalShell Mcp ProgrammaticToolCalling Tool "
                "ToolSearchTool WebSearchPreviewTool WebSearchTool XSearchTool"
            ),
            "crosswalk.responses.vocabulary": (
                "CallStatus IdKind IncompleteDetailsReason InvalidIdError ItemStatus MessageRole NotAStreamError "
                "ResponseStatus ResponsesError ResponsesParseError ResponsesValueError SnapshotError UnknownTypeError "
                "check_id id_kind make_id new_token"
            ),
        },
    )

"""The Responses API as types: responses, stream events and requests, without dropping a field.

Every object of the API is a :class:`Record`, an immutable attrs value. ``None`` means that the field was not sent, or
sent as ``null``; ``presence`` distinguishes the two. Fields without an attribute are in ``extensions``.
:func:`to_json` writes the JSON value that :func:`parse_response`, :func:`parse_event`, :func:`parse_item` and
:func:`parse` read. Class names are those of the official SDK. A field named like a keyword has an underscore
(``async_``).

====================== ===============================================================================================
``records``            how a type is declared: ``@record class X(Record)``
``hooks``              how cattrs reads and writes records
``making``             the values that their constructors accept
``families``           unions whose members are distinguished by ``type``
``unions``             the unions, loaded when needed
``reading``            ``parse…``, ``to_json``, ``to_dict``, and ``unknown="raise"`` or ``"keep"`` (``UnknownItem`` …)
``response``           ``Response`` and its token counts, with its parts in ``details`` and ``formats``
``parsed``             ``ParsedResponse[T]``
``items``              the unions ``ResponseOutputItem`` and ``ResponseInputItem``, and ``register_item``
``messages``           ``ResponseOutputMessage``, ``InputMessage``, ``EasyInputMessage``, ``ResponseReasoningItem``
``function_calls``     calls that the client answers, and their outputs (``ToolOutput``)
``search_calls``       file search, web search, tool search
``server_calls``       code interpreter, image generation, MCP
``computer_calls``     computer use
``shell_calls``        shells and patches
``content``            content parts and log probabilities
``annotations``        the sources that a text cites
``tools``              tool definitions, with ``function_tools`` and ``search_tools``
``tool_choice``        the choice of a tool
``containers``         the environments of tools
``params``             ``ResponseCreateParams``
``events``             the union ``ResponseStreamEvent`` and every event, and ``register_event``
``accumulator``        ``ResponseAccumulator``: events to snapshots of the response
``toolkit``            ``ResponseToolCall``: the calls of all tools behind one interface, and ``register_tool_call``
``chunks``             the results of tool calls in one form
``cited``              ``CitedResponse``: sources, numbered, located in the text and compressed
``pipeline``           ``StreamHandler``: events through processors to displays
``display``            ``DisplayStrategy``: plain text, live terminal, JSON Lines
``vocabulary``         statuses and roles, which are closed sets
``ids``                ids with prefixes, generated and checked
``errors``             the exceptions
====================== ===============================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.accumulator.accumulating import (
        ResponseAccumulator as ResponseAccumulator,
        ResponseSnapshot as ResponseSnapshot,
        snapshots as snapshots,
    )
    from crosswalk.responses.annotations import (
        Annotation as Annotation,
        AnnotationContainerFileCitation as AnnotationContainerFileCitation,
        AnnotationFileCitation as AnnotationFileCitation,
        AnnotationFilePath as AnnotationFilePath,
        AnnotationURLCitation as AnnotationURLCitation,
        UnknownAnnotation as UnknownAnnotation,
    )
    from crosswalk.responses.chunks import (
        Chunk as Chunk,
        CitationAnnotation as CitationAnnotation,
    )
    from crosswalk.responses.cited.citations import (
        Citation as Citation,
        CitationMarker as CitationMarker,
        CompressionMode as CompressionMode,
        CompressionReport as CompressionReport,
    )
    from crosswalk.responses.cited.response import (
        CitedResponse as CitedResponse,
    )
    from crosswalk.responses.computer_calls import (
        Click as Click,
        ComputerAction as ComputerAction,
        DoubleClick as DoubleClick,
        Drag as Drag,
        DragPath as DragPath,
        Keypress as Keypress,
        Move as Move,
        ResponseComputerToolCall as ResponseComputerToolCall,
        ResponseComputerToolCallOutputItem as ResponseComputerToolCallOutputItem,
        ResponseComputerToolCallOutputScreenshot as ResponseComputerToolCallOutputScreenshot,
        SafetyCheck as SafetyCheck,
        Screenshot as Screenshot,
        Scroll as Scroll,
        Type as Type,
        UnknownComputerAction as UnknownComputerAction,
        Wait as Wait,
    )
    from crosswalk.responses.containers import (
        CodeInterpreterContainer as CodeInterpreterContainer,
        ContainerAuto as ContainerAuto,
        ContainerNetworkPolicyAllowlist as ContainerNetworkPolicyAllowlist,
        ContainerNetworkPolicyDisabled as ContainerNetworkPolicyDisabled,
        ContainerNetworkPolicyDomainSecret as ContainerNetworkPolicyDomainSecret,
        ContainerReference as ContainerReference,
        InlineSkill as InlineSkill,
        InlineSkillSource as InlineSkillSource,
        LocalEnvironment as LocalEnvironment,
        LocalSkill as LocalSkill,
        NetworkPolicy as NetworkPolicy,
        ShellEnvironment as ShellEnvironment,
        Skill as Skill,
        SkillReference as SkillReference,
        UnknownEnvironment as UnknownEnvironment,
    )
    from crosswalk.responses.content import (
        InputContent as InputContent,
        Logprob as Logprob,
        OutputContent as OutputContent,
        PromptCacheBreakpoint as PromptCacheBreakpoint,
        ReasoningText as ReasoningText,
        ResponseInputFile as ResponseInputFile,
        ResponseInputImage as ResponseInputImage,
        ResponseInputText as ResponseInputText,
        ResponseOutputRefusal as ResponseOutputRefusal,
        ResponseOutputText as ResponseOutputText,
        StreamedPart as StreamedPart,
        SummaryText as SummaryText,
        TopLogprob as TopLogprob,
        UnknownPart as UnknownPart,
    )
    from crosswalk.responses.details import (
        AccessPrograms as AccessPrograms,
        CacheHit as CacheHit,
        CacheMiss as CacheMiss,
        ComparisonResponseNotFound as ComparisonResponseNotFound,
        Conversation as Conversation,
        DiagnosticsUnavailable as DiagnosticsUnavailable,
        ErrorBody as ErrorBody,
        ErrorDetail as ErrorDetail,
        ImageOptions as ImageOptions,
        IncompleteDetails as IncompleteDetails,
        InputTransformation as InputTransformation,
        Misalignment as Misalignment,
        MisalignmentSteer as MisalignmentSteer,
        Moderation as Moderation,
        ModerationError as ModerationError,
        ModerationOutcome as ModerationOutcome,
        ModerationResult as ModerationResult,
        PromptCacheDiagnostics as PromptCacheDiagnostics,
        PromptCacheOptions as PromptCacheOptions,
        ResponseError as ResponseError,
        ResponsePrompt as ResponsePrompt,
        UnknownCacheDiagnostics as UnknownCacheDiagnostics,
        UnknownModeration as UnknownModeration,
        UnknownTransformation as UnknownTransformation,
    )
    from crosswalk.responses.display.plain import (
        JSONLinesDisplay as JSONLinesDisplay,
        PlainTextDisplay as PlainTextDisplay,
        displays as displays,
        live_display as live_display,
    )
    from crosswalk.responses.display.strategy import (
        DisplayFactory as DisplayFactory,
        DisplayRegistry as DisplayRegistry,
        DisplayStrategy as DisplayStrategy,
        UnknownDisplayError as UnknownDisplayError,
        Update as Update,
        UpdateKind as UpdateKind,
    )
    from crosswalk.responses.errors import (
        InvalidIdError as InvalidIdError,
        NotAStreamError as NotAStreamError,
        ResponsesError as ResponsesError,
        ResponsesParseError as ResponsesParseError,
        ResponsesValueError as ResponsesValueError,
        SnapshotError as SnapshotError,
        UnknownTypeError as UnknownTypeError,
    )
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
    from crosswalk.responses.families import (
        Unknown as Unknown,
    )
    from crosswalk.responses.formats import (
        Reasoning as Reasoning,
        ResponseFormatJSONObject as ResponseFormatJSONObject,
        ResponseFormatText as ResponseFormatText,
        ResponseFormatTextConfig as ResponseFormatTextConfig,
        ResponseFormatTextJSONSchemaConfig as ResponseFormatTextJSONSchemaConfig,
        ResponseTextConfig as ResponseTextConfig,
        UnknownTextFormat as UnknownTextFormat,
    )
    from crosswalk.responses.function_calls import (
        ResponseCustomToolCall as ResponseCustomToolCall,
        ResponseCustomToolCallOutputItem as ResponseCustomToolCallOutputItem,
        ResponseFunctionToolCall as ResponseFunctionToolCall,
        ResponseFunctionToolCallOutputItem as ResponseFunctionToolCallOutputItem,
        ToolOutput as ToolOutput,
    )
    from crosswalk.responses.function_tools import (
        CustomTool as CustomTool,
        CustomToolFormat as CustomToolFormat,
        FunctionTool as FunctionTool,
        GrammarFormat as GrammarFormat,
        NamespaceTool as NamespaceTool,
        TextFormat as TextFormat,
        UnknownFormat as UnknownFormat,
        UnknownTool as UnknownTool,
    )
    from crosswalk.responses.hooks import (
        OnUnknown as OnUnknown,
    )
    from crosswalk.responses.ids import (
        IdKind as IdKind,
        check_id as check_id,
        id_kind as id_kind,
        make_id as make_id,
        new_token as new_token,
    )
    from crosswalk.responses.item import (
        Caller as Caller,
        CallerDirect as CallerDirect,
        CallerProgram as CallerProgram,
        Item as Item,
        UnknownCaller as UnknownCaller,
        UnknownItem as UnknownItem,
    )
    from crosswalk.responses.items import (
        AdditionalTools as AdditionalTools,
        CompactionTrigger as CompactionTrigger,
        ItemReference as ItemReference,
        KnownInputItem as KnownInputItem,
        KnownOutputItem as KnownOutputItem,
        Program as Program,
        ProgramOutput as ProgramOutput,
        ResponseCompactionItem as ResponseCompactionItem,
        ResponseConfigurationUpdateItem as ResponseConfigurationUpdateItem,
        ResponseInputItem as ResponseInputItem,
        ResponseOutputItem as ResponseOutputItem,
        register_item as register_item,
    )
    from crosswalk.responses.messages import (
        EasyInputMessage as EasyInputMessage,
        InputMessage as InputMessage,
        ResponseOutputMessage as ResponseOutputMessage,
        ResponseReasoningItem as ResponseReasoningItem,
    )
    from crosswalk.responses.params import (
        ContextManagement as ContextManagement,
        ModerationOptions as ModerationOptions,
        ModerationPolicy as ModerationPolicy,
        ModerationRule as ModerationRule,
        ResponseCreateParams as ResponseCreateParams,
        StreamOptions as StreamOptions,
    )
    from crosswalk.responses.parsed import (
        ParsedResponse as ParsedResponse,
        ParsedText as ParsedText,
        parse_output as parse_output,
    )
    from crosswalk.responses.pipeline.handler import (
        OnFailure as OnFailure,
        StreamHandler as StreamHandler,
    )
    from crosswalk.responses.pipeline.processors import (
        CitationProcessor as CitationProcessor,
        EndProcessor as EndProcessor,
        ToolProcessor as ToolProcessor,
        default_processors as default_processors,
    )
    from crosswalk.responses.pipeline.registry import (
        EventHandler as EventHandler,
        EventKey as EventKey,
        EventRouter as EventRouter,
        PipelineError as PipelineError,
        Processor as Processor,
        ProcessorRegistry as ProcessorRegistry,
        Stage as Stage,
        StageFailure as StageFailure,
        StageKind as StageKind,
    )
    from crosswalk.responses.pipeline.source import (
        aread_events as aread_events,
        read_events as read_events,
    )
    from crosswalk.responses.pipeline.watch import (
        Places as Places,
        ProgressWatch as ProgressWatch,
    )
    from crosswalk.responses.pipeline.written import (
        WrittenProcessor as WrittenProcessor,
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
        Record as Record,
        record as record,
    )
    from crosswalk.responses.response import (
        CachedTokensDetails as CachedTokensDetails,
        CacheWriteTokensDetails as CacheWriteTokensDetails,
        ImageGenerationUsage as ImageGenerationUsage,
        InputTokensDetails as InputTokensDetails,
        ModalityTokens as ModalityTokens,
        OutputTokensDetails as OutputTokensDetails,
        Response as Response,
        ResponseUsage as ResponseUsage,
        ToolUsage as ToolUsage,
        WebSearchUsage as WebSearchUsage,
    )
    from crosswalk.responses.search_calls import (
        ActionFind as ActionFind,
        ActionOpenPage as ActionOpenPage,
        ActionSearch as ActionSearch,
        FilePage as FilePage,
        FileSearchResult as FileSearchResult,
        FoundDocument as FoundDocument,
        ResponseDocumentFinderToolCall as ResponseDocumentFinderToolCall,
        ResponseFileReaderToolCall as ResponseFileReaderToolCall,
        ResponseFileSearchToolCall as ResponseFileSearchToolCall,
        ResponseFunctionWebSearch as ResponseFunctionWebSearch,
        ResponseToolSearchCall as ResponseToolSearchCall,
        ResponseToolSearchOutputItem as ResponseToolSearchOutputItem,
        ResponseXSearchToolCall as ResponseXSearchToolCall,
        UnknownWebSearchAction as UnknownWebSearchAction,
        UnknownWebSearchSource as UnknownWebSearchSource,
        WebSearchAction as WebSearchAction,
        WebSearchAPI as WebSearchAPI,
        WebSearchResult as WebSearchResult,
        WebSearchSource as WebSearchSource,
        WebSearchURL as WebSearchURL,
    )
    from crosswalk.responses.search_tools import (
        ComparisonFilter as ComparisonFilter,
        CompoundFilter as CompoundFilter,
        DocumentFinderTool as DocumentFinderTool,
        FileReaderTool as FileReaderTool,
        FileSearchFilter as FileSearchFilter,
        FileSearchTool as FileSearchTool,
        HybridSearch as HybridSearch,
        RankingOptions as RankingOptions,
        ToolSearchTool as ToolSearchTool,
        UserLocation as UserLocation,
        WebSearchFilters as WebSearchFilters,
        WebSearchPreviewTool as WebSearchPreviewTool,
        WebSearchTool as WebSearchTool,
        XSearchTool as XSearchTool,
    )
    from crosswalk.responses.server_calls import (
        CodeInterpreterImage as CodeInterpreterImage,
        CodeInterpreterLogs as CodeInterpreterLogs,
        CodeInterpreterOutput as CodeInterpreterOutput,
        HTTPError as HTTPError,
        ImageGenerationCall as ImageGenerationCall,
        ImageGenerationError as ImageGenerationError,
        ImageModerationDetails as ImageModerationDetails,
        McpApprovalRequest as McpApprovalRequest,
        McpApprovalResponse as McpApprovalResponse,
        McpCall as McpCall,
        McpCallError as McpCallError,
        McpListTools as McpListTools,
        McpProtocolError as McpProtocolError,
        McpTool as McpTool,
        McpToolExecutionError as McpToolExecutionError,
        ResponseCodeInterpreterToolCall as ResponseCodeInterpreterToolCall,
        SvgUsage as SvgUsage,
        UnknownCodeInterpreterOutput as UnknownCodeInterpreterOutput,
        UnknownMcpCallError as UnknownMcpCallError,
    )
    from crosswalk.responses.shell_calls import (
        ExitOutcome as ExitOutcome,
        LocalShellAction as LocalShellAction,
        LocalShellCall as LocalShellCall,
        LocalShellCallOutput as LocalShellCallOutput,
        PatchCreateFile as PatchCreateFile,
        PatchDeleteFile as PatchDeleteFile,
        PatchOperation as PatchOperation,
        PatchUpdateFile as PatchUpdateFile,
        ResponseApplyPatchToolCall as ResponseApplyPatchToolCall,
        ResponseApplyPatchToolCallOutput as ResponseApplyPatchToolCallOutput,
        ResponseFunctionShellCallOutputContent as ResponseFunctionShellCallOutputContent,
        ResponseFunctionShellToolCall as ResponseFunctionShellToolCall,
        ResponseFunctionShellToolCallOutput as ResponseFunctionShellToolCallOutput,
        ShellAction as ShellAction,
        ShellOutcome as ShellOutcome,
        TimeoutOutcome as TimeoutOutcome,
        UnknownPatchOperation as UnknownPatchOperation,
        UnknownShellOutcome as UnknownShellOutcome,
    )
    from crosswalk.responses.tool_choice import (
        ToolChoice as ToolChoice,
        ToolChoiceAllowed as ToolChoiceAllowed,
        ToolChoiceApplyPatch as ToolChoiceApplyPatch,
        ToolChoiceCustom as ToolChoiceCustom,
        ToolChoiceFunction as ToolChoiceFunction,
        ToolChoiceMcp as ToolChoiceMcp,
        ToolChoiceProgrammatic as ToolChoiceProgrammatic,
        ToolChoiceShell as ToolChoiceShell,
        ToolChoiceTypes as ToolChoiceTypes,
        UnknownToolChoice as UnknownToolChoice,
    )
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
    from crosswalk.responses.tools import (
        ApplyPatchTool as ApplyPatchTool,
        CodeInterpreter as CodeInterpreter,
        ComputerTool as ComputerTool,
        ComputerUsePreviewTool as ComputerUsePreviewTool,
        FunctionShellTool as FunctionShellTool,
        ImageGeneration as ImageGeneration,
        ImageMask as ImageMask,
        LocalShell as LocalShell,
        Mcp as Mcp,
        McpApprovalFilter as McpApprovalFilter,
        McpToolFilter as McpToolFilter,
        ProgrammaticToolCalling as ProgrammaticToolCalling,
        SvgOptions as SvgOptions,
        SvgReasoning as SvgReasoning,
        Tool as Tool,
    )
    from crosswalk.responses.vocabulary import (
        ApplyPatchCallOutputStatus as ApplyPatchCallOutputStatus,
        ApplyPatchCallStatus as ApplyPatchCallStatus,
        CodeInterpreterCallStatus as CodeInterpreterCallStatus,
        ComputerCallOutputStatus as ComputerCallOutputStatus,
        FileSearchCallStatus as FileSearchCallStatus,
        ImageGenerationCallStatus as ImageGenerationCallStatus,
        IncompleteReason as IncompleteReason,
        ItemStatus as ItemStatus,
        McpCallStatus as McpCallStatus,
        MessageRole as MessageRole,
        ProgramOutputStatus as ProgramOutputStatus,
        ResponseStatus as ResponseStatus,
        WebSearchCallStatus as WebSearchCallStatus,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.accumulator.accumulating": (
                "ResponseAccumulator ResponseSnapshot snapshots"
            ),
            "crosswalk.responses.annotations": (
                "Annotation AnnotationContainerFileCitation AnnotationFileCitation AnnotationFilePath "
                "AnnotationURLCitation UnknownAnnotation"
            ),
            "crosswalk.responses.chunks": "Chunk CitationAnnotation",
            "crosswalk.responses.cited.citations": (
                "Citation CitationMarker CompressionMode CompressionReport"
            ),
            "crosswalk.responses.cited.response": "CitedResponse",
            "crosswalk.responses.computer_calls": (
                "Click ComputerAction DoubleClick Drag DragPath Keypress Move ResponseComputerToolCall "
                "ResponseComputerToolCallOutputItem ResponseComputerToolCallOutputScreenshot SafetyCheck "
                "Screenshot Scroll Type UnknownComputerAction Wait"
            ),
            "crosswalk.responses.containers": (
                "CodeInterpreterContainer ContainerAuto ContainerNetworkPolicyAllowlist "
                "ContainerNetworkPolicyDisabled ContainerNetworkPolicyDomainSecret ContainerReference "
                "InlineSkill InlineSkillSource LocalEnvironment LocalSkill NetworkPolicy ShellEnvironment "
                "Skill SkillReference UnknownEnvironment"
            ),
            "crosswalk.responses.content": (
                "InputContent Logprob OutputContent PromptCacheBreakpoint ReasoningText ResponseInputFile "
                "ResponseInputImage ResponseInputText ResponseOutputRefusal ResponseOutputText StreamedPart "
                "SummaryText TopLogprob UnknownPart"
            ),
            "crosswalk.responses.details": (
                "AccessPrograms CacheHit CacheMiss ComparisonResponseNotFound Conversation "
                "DiagnosticsUnavailable ErrorBody ErrorDetail ImageOptions IncompleteDetails "
                "InputTransformation Misalignment MisalignmentSteer Moderation ModerationError "
                "ModerationOutcome ModerationResult PromptCacheDiagnostics PromptCacheOptions ResponseError "
                "ResponsePrompt UnknownCacheDiagnostics UnknownModeration UnknownTransformation"
            ),
            "crosswalk.responses.display.plain": ("JSONLinesDisplay PlainTextDisplay displays live_display"),
            "crosswalk.responses.display.strategy": (
                "DisplayFactory DisplayRegistry DisplayStrategy UnknownDisplayError Update UpdateKind"
            ),
            "crosswalk.responses.errors": (
                "InvalidIdError NotAStreamError ResponsesError ResponsesParseError ResponsesValueError "
                "SnapshotError UnknownTypeError"
            ),
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
            "crosswalk.responses.families": "Unknown",
            "crosswalk.responses.formats": (
                "Reasoning ResponseFormatJSONObject ResponseFormatText ResponseFormatTextConfig "
                "ResponseFormatTextJSONSchemaConfig ResponseTextConfig UnknownTextFormat"
            ),
            "crosswalk.responses.function_calls": (
                "ResponseCustomToolCall ResponseCustomToolCallOutputItem ResponseFunctionToolCall "
                "ResponseFunctionToolCallOutputItem ToolOutput"
            ),
            "crosswalk.responses.function_tools": (
                "CustomTool CustomToolFormat FunctionTool GrammarFormat NamespaceTool TextFormat "
                "UnknownFormat UnknownTool"
            ),
            "crosswalk.responses.hooks": "OnUnknown",
            "crosswalk.responses.ids": "IdKind check_id id_kind make_id new_token",
            "crosswalk.responses.item": ("Caller CallerDirect CallerProgram Item UnknownCaller UnknownItem"),
            "crosswalk.responses.items": (
                "AdditionalTools CompactionTrigger ItemReference KnownInputItem KnownOutputItem Program "
                "ProgramOutput ResponseCompactionItem ResponseConfigurationUpdateItem ResponseInputItem "
                "ResponseOutputItem register_item"
            ),
            "crosswalk.responses.messages": (
                "EasyInputMessage InputMessage ResponseOutputMessage ResponseReasoningItem"
            ),
            "crosswalk.responses.params": (
                "ContextManagement ModerationOptions ModerationPolicy ModerationRule ResponseCreateParams "
                "StreamOptions"
            ),
            "crosswalk.responses.parsed": "ParsedResponse ParsedText parse_output",
            "crosswalk.responses.pipeline.handler": "OnFailure StreamHandler",
            "crosswalk.responses.pipeline.processors": (
                "CitationProcessor EndProcessor ToolProcessor default_processors"
            ),
            "crosswalk.responses.pipeline.registry": (
                "EventHandler EventKey EventRouter PipelineError Processor ProcessorRegistry Stage "
                "StageFailure StageKind"
            ),
            "crosswalk.responses.pipeline.source": "aread_events read_events",
            "crosswalk.responses.pipeline.watch": "Places ProgressWatch",
            "crosswalk.responses.pipeline.written": "WrittenProcessor",
            "crosswalk.responses.reading": (
                "JSONInput parse parse_event parse_input_item parse_item parse_params parse_response "
                "to_dict to_json"
            ),
            "crosswalk.responses.records": "Record record",
            "crosswalk.responses.response": (
                "CacheWriteTokensDetails CachedTokensDetails ImageGenerationUsage InputTokensDetails "
                "ModalityTokens OutputTokensDetails Response ResponseUsage ToolUsage WebSearchUsage"
            ),
            "crosswalk.responses.search_calls": (
                "ActionFind ActionOpenPage ActionSearch FilePage FileSearchResult FoundDocument "
                "ResponseDocumentFinderToolCall ResponseFileReaderToolCall ResponseFileSearchToolCall "
                "ResponseFunctionWebSearch ResponseToolSearchCall ResponseToolSearchOutputItem "
                "ResponseXSearchToolCall UnknownWebSearchAction UnknownWebSearchSource WebSearchAPI "
                "WebSearchAction WebSearchResult WebSearchSource WebSearchURL"
            ),
            "crosswalk.responses.search_tools": (
                "ComparisonFilter CompoundFilter DocumentFinderTool FileReaderTool FileSearchFilter "
                "FileSearchTool HybridSearch RankingOptions ToolSearchTool UserLocation WebSearchFilters "
                "WebSearchPreviewTool WebSearchTool XSearchTool"
            ),
            "crosswalk.responses.server_calls": (
                "CodeInterpreterImage CodeInterpreterLogs CodeInterpreterOutput HTTPError "
                "ImageGenerationCall ImageGenerationError ImageModerationDetails McpApprovalRequest "
                "McpApprovalResponse McpCall McpCallError McpListTools McpProtocolError McpTool "
                "McpToolExecutionError ResponseCodeInterpreterToolCall SvgUsage "
                "UnknownCodeInterpreterOutput UnknownMcpCallError"
            ),
            "crosswalk.responses.shell_calls": (
                "ExitOutcome LocalShellAction LocalShellCall LocalShellCallOutput PatchCreateFile "
                "PatchDeleteFile PatchOperation PatchUpdateFile ResponseApplyPatchToolCall "
                "ResponseApplyPatchToolCallOutput ResponseFunctionShellCallOutputContent "
                "ResponseFunctionShellToolCall ResponseFunctionShellToolCallOutput ShellAction ShellOutcome "
                "TimeoutOutcome UnknownPatchOperation UnknownShellOutcome"
            ),
            "crosswalk.responses.tool_choice": (
                "ToolChoice ToolChoiceAllowed ToolChoiceApplyPatch ToolChoiceCustom ToolChoiceFunction "
                "ToolChoiceMcp ToolChoiceProgrammatic ToolChoiceShell ToolChoiceTypes UnknownToolChoice"
            ),
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
            "crosswalk.responses.tools": (
                "ApplyPatchTool CodeInterpreter ComputerTool ComputerUsePreviewTool FunctionShellTool "
                "ImageGeneration ImageMask LocalShell Mcp McpApprovalFilter McpToolFilter "
                "ProgrammaticToolCalling SvgOptions SvgReasoning Tool"
            ),
            "crosswalk.responses.vocabulary": (
                "ApplyPatchCallOutputStatus ApplyPatchCallStatus CodeInterpreterCallStatus "
                "ComputerCallOutputStatus FileSearchCallStatus ImageGenerationCallStatus IncompleteReason "
                "ItemStatus McpCallStatus MessageRole ProgramOutputStatus ResponseStatus "
                "WebSearchCallStatus"
            ),
        },
    )

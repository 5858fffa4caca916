"""The Responses API as types: responses, stream events and requests, without dropping a field.

Every object of the API is a :class:`ResponsesRecord`, an immutable attrs value. ``None`` means that the field was not
sent, or sent as ``null``. ``presence`` distinguishes the two. Fields without an attribute are in ``extensions``.
:func:`to_json` writes the JSON value that :func:`parse_response`, :func:`parse_event`, :func:`parse_item` and
:func:`parse` read. Class names are those of the official SDK. A field named like a keyword has an underscore
(``async_``).

====================== ===============================================================================================
``records``            how a type is declared: ``@record class X(ResponsesRecord)``
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
    from crosswalk.responses.accumulator import (
        ResponseAccumulator as ResponseAccumulator,
        ResponseSnapshot as ResponseSnapshot,
        snapshots as snapshots,
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
        AccessPrograms as AccessPrograms,
        Annotation as Annotation,
        AnnotationContainerFileCitation as AnnotationContainerFileCitation,
        AnnotationFileCitation as AnnotationFileCitation,
        AnnotationFilePath as AnnotationFilePath,
        AnnotationURLCitation as AnnotationURLCitation,
        CacheHit as CacheHit,
        CacheMiss as CacheMiss,
        ComparisonResponseNotFound as ComparisonResponseNotFound,
        Conversation as Conversation,
        DiagnosticsUnavailable as DiagnosticsUnavailable,
        ErrorBody as ErrorBody,
        ErrorDetail as ErrorDetail,
        ImageOptions as ImageOptions,
        IncompleteDetails as IncompleteDetails,
        InputContent as InputContent,
        InputTransformation as InputTransformation,
        Logprob as Logprob,
        Misalignment as Misalignment,
        MisalignmentSteer as MisalignmentSteer,
        Moderation as Moderation,
        ModerationError as ModerationError,
        ModerationOutcome as ModerationOutcome,
        ModerationResult as ModerationResult,
        OutputContent as OutputContent,
        PromptCacheBreakpoint as PromptCacheBreakpoint,
        PromptCacheDiagnostics as PromptCacheDiagnostics,
        PromptCacheOptions as PromptCacheOptions,
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
        UnknownCacheDiagnostics as UnknownCacheDiagnostics,
        UnknownModeration as UnknownModeration,
        UnknownPart as UnknownPart,
        UnknownTextFormat as UnknownTextFormat,
        UnknownTransformation as UnknownTransformation,
    )
    from crosswalk.responses.display import (
        DisplayFactory as DisplayFactory,
        DisplayRegistry as DisplayRegistry,
        DisplayStrategy as DisplayStrategy,
        UnknownDisplayError as UnknownDisplayError,
        Update as Update,
        UpdateKind as UpdateKind,
    )
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
    from crosswalk.responses.function_tools import (
        CustomTool as CustomTool,
        CustomToolFormat as CustomToolFormat,
        FunctionTool as FunctionTool,
        GrammarFormat as GrammarFormat,
        NamespaceTool as NamespaceTool,
        TextFormat as TextFormat,
        ToolChoice as ToolChoice,
        ToolChoiceAllowed as ToolChoiceAllowed,
        ToolChoiceApplyPatch as ToolChoiceApplyPatch,
        ToolChoiceCustom as ToolChoiceCustom,
        ToolChoiceFunction as ToolChoiceFunction,
        ToolChoiceMcp as ToolChoiceMcp,
        ToolChoiceProgrammatic as ToolChoiceProgrammatic,
        ToolChoiceShell as ToolChoiceShell,
        ToolChoiceTypes as ToolChoiceTypes,
        UnknownFormat as UnknownFormat,
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
        ExitOutcome as ExitOutcome,
        ItemReference as ItemReference,
        Keypress as Keypress,
        KnownInputItem as KnownInputItem,
        KnownOutputItem as KnownOutputItem,
        LocalShellAction as LocalShellAction,
        LocalShellCall as LocalShellCall,
        LocalShellCallOutput as LocalShellCallOutput,
        Move as Move,
        PatchCreateFile as PatchCreateFile,
        PatchDeleteFile as PatchDeleteFile,
        PatchOperation as PatchOperation,
        PatchUpdateFile as PatchUpdateFile,
        Program as Program,
        ProgramOutput as ProgramOutput,
        ResponseApplyPatchToolCall as ResponseApplyPatchToolCall,
        ResponseApplyPatchToolCallOutput as ResponseApplyPatchToolCallOutput,
        ResponseCompactionItem as ResponseCompactionItem,
        ResponseComputerToolCall as ResponseComputerToolCall,
        ResponseComputerToolCallOutputItem as ResponseComputerToolCallOutputItem,
        ResponseComputerToolCallOutputScreenshot as ResponseComputerToolCallOutputScreenshot,
        ResponseConfigurationUpdateItem as ResponseConfigurationUpdateItem,
        ResponseFunctionShellCallOutputContent as ResponseFunctionShellCallOutputContent,
        ResponseFunctionShellToolCall as ResponseFunctionShellToolCall,
        ResponseFunctionShellToolCallOutput as ResponseFunctionShellToolCallOutput,
        ResponseInputItem as ResponseInputItem,
        ResponseOutputItem as ResponseOutputItem,
        SafetyCheck as SafetyCheck,
        Screenshot as Screenshot,
        Scroll as Scroll,
        ShellAction as ShellAction,
        ShellOutcome as ShellOutcome,
        TimeoutOutcome as TimeoutOutcome,
        Type as Type,
        UnknownComputerAction as UnknownComputerAction,
        UnknownPatchOperation as UnknownPatchOperation,
        UnknownShellOutcome as UnknownShellOutcome,
        Wait as Wait,
        register_item as register_item,
    )
    from crosswalk.responses.messages import (
        Caller as Caller,
        CallerDirect as CallerDirect,
        CallerProgram as CallerProgram,
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
        UnknownCaller as UnknownCaller,
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
    from crosswalk.responses.plain_display import (
        JSONLinesDisplay as JSONLinesDisplay,
        PlainTextDisplay as PlainTextDisplay,
        displays as displays,
        live_display as live_display,
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
        CachedTokensDetails as CachedTokensDetails,
        CacheWriteTokensDetails as CacheWriteTokensDetails,
        ContextManagement as ContextManagement,
        ImageGenerationUsage as ImageGenerationUsage,
        InputTokensDetails as InputTokensDetails,
        ModalityTokens as ModalityTokens,
        ModerationOptions as ModerationOptions,
        ModerationPolicy as ModerationPolicy,
        ModerationRule as ModerationRule,
        OutputTokensDetails as OutputTokensDetails,
        Response as Response,
        ResponseCreateParams as ResponseCreateParams,
        ResponseUsage as ResponseUsage,
        StreamOptions as StreamOptions,
        ToolUsage as ToolUsage,
        WebSearchUsage as WebSearchUsage,
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
        ResponseDocumentFinderToolCall as ResponseDocumentFinderToolCall,
        ResponseFileReaderToolCall as ResponseFileReaderToolCall,
        ResponseFileSearchToolCall as ResponseFileSearchToolCall,
        ResponseFunctionWebSearch as ResponseFunctionWebSearch,
        ResponseToolSearchCall as ResponseToolSearchCall,
        ResponseToolSearchOutputItem as ResponseToolSearchOutputItem,
        ResponseXSearchToolCall as ResponseXSearchToolCall,
        SvgUsage as SvgUsage,
        UnknownCodeInterpreterOutput as UnknownCodeInterpreterOutput,
        UnknownMcpCallError as UnknownMcpCallError,
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
        CodeInterpreterContainer as CodeInterpreterContainer,
        ComparisonFilter as ComparisonFilter,
        CompoundFilter as CompoundFilter,
        ComputerTool as ComputerTool,
        ComputerUsePreviewTool as ComputerUsePreviewTool,
        ContainerAuto as ContainerAuto,
        ContainerNetworkPolicyAllowlist as ContainerNetworkPolicyAllowlist,
        ContainerNetworkPolicyDisabled as ContainerNetworkPolicyDisabled,
        ContainerNetworkPolicyDomainSecret as ContainerNetworkPolicyDomainSecret,
        ContainerReference as ContainerReference,
        DocumentFinderTool as DocumentFinderTool,
        FileReaderTool as FileReaderTool,
        FileSearchFilter as FileSearchFilter,
        FileSearchTool as FileSearchTool,
        FunctionShellTool as FunctionShellTool,
        HybridSearch as HybridSearch,
        ImageGeneration as ImageGeneration,
        ImageMask as ImageMask,
        InlineSkill as InlineSkill,
        InlineSkillSource as InlineSkillSource,
        LocalEnvironment as LocalEnvironment,
        LocalShell as LocalShell,
        LocalSkill as LocalSkill,
        Mcp as Mcp,
        McpApprovalFilter as McpApprovalFilter,
        McpToolFilter as McpToolFilter,
        NetworkPolicy as NetworkPolicy,
        ProgrammaticToolCalling as ProgrammaticToolCalling,
        RankingOptions as RankingOptions,
        ShellEnvironment as ShellEnvironment,
        Skill as Skill,
        SkillReference as SkillReference,
        SvgOptions as SvgOptions,
        SvgReasoning as SvgReasoning,
        Tool as Tool,
        ToolSearchTool as ToolSearchTool,
        UnknownEnvironment as UnknownEnvironment,
        UserLocation as UserLocation,
        WebSearchFilters as WebSearchFilters,
        WebSearchPreviewTool as WebSearchPreviewTool,
        WebSearchTool as WebSearchTool,
        XSearchTool as XSearchTool,
    )
    from crosswalk.responses.vocabulary import (
        ApplyPatchCallOutputStatus as ApplyPatchCallOutputStatus,
        ApplyPatchCallStatus as ApplyPatchCallStatus,
        CodeInterpreterCallStatus as CodeInterpreterCallStatus,
        ComputerCallOutputStatus as ComputerCallOutputStatus,
        FileSearchCallStatus as FileSearchCallStatus,
        IdKind as IdKind,
        ImageGenerationCallStatus as ImageGenerationCallStatus,
        IncompleteDetailsReason as IncompleteDetailsReason,
        InvalidIdError as InvalidIdError,
        ItemStatus as ItemStatus,
        McpCallStatus as McpCallStatus,
        MessageRole as MessageRole,
        NotAStreamError as NotAStreamError,
        ProgramOutputStatus as ProgramOutputStatus,
        ResponsesError as ResponsesError,
        ResponsesParseError as ResponsesParseError,
        ResponseStatus as ResponseStatus,
        ResponsesValueError as ResponsesValueError,
        SnapshotError as SnapshotError,
        UnknownTypeError as UnknownTypeError,
        WebSearchCallStatus as WebSearchCallStatus,
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
            "crosswalk.responses.citations": (
                "Chunk CitationAnnotation CitationMarker CompressionMode CompressionReport NumberedSource"
            ),
            "crosswalk.responses.cited": "CitedResponse",
            "crosswalk.responses.content": (
                "AccessPrograms Annotation AnnotationContainerFileCitation AnnotationFileCitation "
                "AnnotationFilePath AnnotationURLCitation CacheHit CacheMiss ComparisonResponseNotFound "
                "Conversation DiagnosticsUnavailable ErrorBody ErrorDetail ImageOptions IncompleteDetails "
                "InputContent InputTransformation Logprob Misalignment MisalignmentSteer Moderation "
                "ModerationError ModerationOutcome ModerationResult OutputContent PromptCacheBreakpoint "
                "PromptCacheDiagnostics PromptCacheOptions Reasoning ReasoningText ResponseError "
                "ResponseFormatJSONObject ResponseFormatText ResponseFormatTextConfig "
                "ResponseFormatTextJSONSchemaConfig ResponseInputFile ResponseInputImage ResponseInputText "
                "ResponseOutputRefusal ResponseOutputText ResponsePrompt ResponseTextConfig StreamedPart "
                "SummaryText TopLogprob UnknownAnnotation UnknownCacheDiagnostics UnknownModeration "
                "UnknownPart UnknownTextFormat UnknownTransformation"
            ),
            "crosswalk.responses.display": (
                "DisplayFactory DisplayRegistry DisplayStrategy UnknownDisplayError Update UpdateKind"
            ),
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
            "crosswalk.responses.function_tools": (
                "CustomTool CustomToolFormat FunctionTool GrammarFormat NamespaceTool TextFormat ToolChoice "
                "ToolChoiceAllowed ToolChoiceApplyPatch ToolChoiceCustom ToolChoiceFunction ToolChoiceMcp "
                "ToolChoiceProgrammatic ToolChoiceShell ToolChoiceTypes UnknownFormat UnknownTool "
                "UnknownToolChoice"
            ),
            "crosswalk.responses.items": (
                "AdditionalTools Click CompactionTrigger ComputerAction DoubleClick Drag DragPath "
                "ExitOutcome ItemReference Keypress KnownInputItem KnownOutputItem LocalShellAction "
                "LocalShellCall LocalShellCallOutput Move PatchCreateFile PatchDeleteFile PatchOperation "
                "PatchUpdateFile Program ProgramOutput ResponseApplyPatchToolCall "
                "ResponseApplyPatchToolCallOutput ResponseCompactionItem ResponseComputerToolCall "
                "ResponseComputerToolCallOutputItem ResponseComputerToolCallOutputScreenshot "
                "ResponseConfigurationUpdateItem ResponseFunctionShellCallOutputContent "
                "ResponseFunctionShellToolCall ResponseFunctionShellToolCallOutput ResponseInputItem "
                "ResponseOutputItem SafetyCheck Screenshot Scroll ShellAction ShellOutcome TimeoutOutcome "
                "Type UnknownComputerAction UnknownPatchOperation UnknownShellOutcome Wait register_item"
            ),
            "crosswalk.responses.messages": (
                "Caller CallerDirect CallerProgram EasyInputMessage InputMessage Item "
                "ResponseCustomToolCall ResponseCustomToolCallOutputItem ResponseFunctionToolCall "
                "ResponseFunctionToolCallOutputItem ResponseOutputMessage ResponseReasoningItem ToolOutput "
                "UnknownCaller UnknownItem"
            ),
            "crosswalk.responses.parsed": "ParsedResponse ParsedText parse_output",
            "crosswalk.responses.pipeline": "OnFailure StreamHandler aread_events read_events",
            "crosswalk.responses.plain_display": ("JSONLinesDisplay PlainTextDisplay displays live_display"),
            "crosswalk.responses.processors": (
                "CitationProcessor EndProcessor EventHandler EventKey EventRouter PipelineError Places "
                "Processor ProcessorRegistry ProgressWatch StageFailure StageKind StreamStage ToolProcessor "
                "WrittenProcessor default_processors"
            ),
            "crosswalk.responses.reading": (
                "JSONInput parse parse_event parse_input_item parse_item parse_params parse_response "
                "to_dict to_json"
            ),
            "crosswalk.responses.records": "OnUnknown ResponsesRecord Unknown record",
            "crosswalk.responses.response": (
                "CacheWriteTokensDetails CachedTokensDetails ContextManagement ImageGenerationUsage "
                "InputTokensDetails ModalityTokens ModerationOptions ModerationPolicy ModerationRule "
                "OutputTokensDetails Response ResponseCreateParams ResponseUsage StreamOptions ToolUsage "
                "WebSearchUsage"
            ),
            "crosswalk.responses.server_calls": (
                "ActionFind ActionOpenPage ActionSearch CodeInterpreterImage CodeInterpreterLogs "
                "CodeInterpreterOutput FilePage FileSearchResult FoundDocument HTTPError "
                "ImageGenerationCall ImageGenerationError ImageModerationDetails McpApprovalRequest "
                "McpApprovalResponse McpCall McpCallError McpListTools McpProtocolError McpTool "
                "McpToolExecutionError ResponseCodeInterpreterToolCall ResponseDocumentFinderToolCall "
                "ResponseFileReaderToolCall ResponseFileSearchToolCall ResponseFunctionWebSearch "
                "ResponseToolSearchCall ResponseToolSearchOutputItem ResponseXSearchToolCall SvgUsage "
                "UnknownCodeInterpreterOutput UnknownMcpCallError UnknownWebSearchAction "
                "UnknownWebSearchSource WebSearchAPI WebSearchAction WebSearchResult WebSearchSource "
                "WebSearchURL"
            ),
            "crosswalk.responses.toolkit": (
                "ComputerToolCall DocumentFinderToolCall FileReaderToolCall FileSearchToolCall "
                "FunctionToolCall ResponseToolCall StatusProgression StatusProgressionError ToolCallError "
                "ToolCallRegistry WebSearchToolCall register_tool_call tool_calls_of tool_registry"
            ),
            "crosswalk.responses.tools": (
                "ApplyPatchTool CodeInterpreter CodeInterpreterContainer ComparisonFilter CompoundFilter "
                "ComputerTool ComputerUsePreviewTool ContainerAuto ContainerNetworkPolicyAllowlist "
                "ContainerNetworkPolicyDisabled ContainerNetworkPolicyDomainSecret ContainerReference "
                "DocumentFinderTool FileReaderTool FileSearchFilter FileSearchTool FunctionShellTool "
                "HybridSearch ImageGeneration ImageMask InlineSkill InlineSkillSource LocalEnvironment "
                "LocalShell LocalSkill Mcp McpApprovalFilter McpToolFilter NetworkPolicy "
                "ProgrammaticToolCalling RankingOptions ShellEnvironment Skill SkillReference SvgOptions "
                "SvgReasoning Tool ToolSearchTool UnknownEnvironment UserLocation WebSearchFilters "
                "WebSearchPreviewTool WebSearchTool XSearchTool"
            ),
            "crosswalk.responses.vocabulary": (
                "ApplyPatchCallOutputStatus ApplyPatchCallStatus CodeInterpreterCallStatus "
                "ComputerCallOutputStatus FileSearchCallStatus IdKind ImageGenerationCallStatus "
                "IncompleteDetailsReason InvalidIdError ItemStatus McpCallStatus MessageRole "
                "NotAStreamError ProgramOutputStatus ResponseStatus ResponsesError ResponsesParseError "
                "ResponsesValueError SnapshotError UnknownTypeError WebSearchCallStatus check_id id_kind "
                "make_id new_token"
            ),
        },
    )

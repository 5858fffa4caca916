"""Everything that the author of a provider plugin needs, in one module. A plugin imports nothing else of Crosswalk.

A plugin is an object with two to four of the hooks, each marked :data:`hookimpl`, registered under the entry-point
group ``crosswalk.providers``. Its hooks take the known values from an event (``take_…``, ``accept_…``), and the rest reaches
``metadata.extensions``. :data:`API` is the version of this module and of the hooks. Within a version, names stay and
signatures only gain keywords. A plugin names its version in ``ProviderInfo(api=…)``.

``ChatRequest``, ``HTTPRequest`` and other names for requests are loaded on first use, because reading answers does not need
them. Import them in ``build_request``. Names that few plugins need are loaded on first use, too.

You add a public name to the imports below, and a name that few plugins need to the table too.
"""

from typing import TYPE_CHECKING

from crosswalk.errors import (
    FramingError as FramingError,
    IncompleteStreamError as IncompleteStreamError,
    InvalidJSONError as InvalidJSONError,
    LimitError as LimitError,
    LineTooLongError as LineTooLongError,
    MappingError as MappingError,
    NestingTooDeepError as NestingTooDeepError,
    StreamTooLargeError as StreamTooLargeError,
    TooManyEventsError as TooManyEventsError,
    TrailingContentError as TrailingContentError,
    UnknownEventError as UnknownEventError,
    UnknownFinishReasonError as UnknownFinishReasonError,
    WireTypeError as WireTypeError,
)
from crosswalk.lazy import face
from crosswalk.mapping.blocks import (
    accept_legacy_logprobs as accept_legacy_logprobs,
    accept_logprobs as accept_logprobs,
    logprob_of as logprob_of,
)
from crosswalk.mapping.event import take_end as take_end
from crosswalk.mapping.failures import (
    VendorErrors as VendorErrors,
    classify as classify,
    error_delta as error_delta,
    error_info as error_info,
    refined as refined,
    take_error as take_error,
)
from crosswalk.mapping.fields import (
    CREATED as CREATED,
    FINISH as FINISH,
    ID as ID,
    MODEL as MODEL,
    REASONING as REASONING,
    REFUSAL as REFUSAL,
    TEXT as TEXT,
    FieldRow as FieldRow,
    FieldTable as FieldTable,
    Said as Said,
    TableDialect as TableDialect,
    calls as calls,
    count as count,
    same as same,
    take_arguments as take_arguments,
)
from crosswalk.mapping.openai_chat import (
    ChatSaid as ChatSaid,
    Echo as Echo,
    OpenAIChatDialect as OpenAIChatDialect,
    take_content as take_content,
    take_text as take_text,
)
from crosswalk.plain_errors import (
    CanonicalJSONError as CanonicalJSONError,
    ConfigurationError as ConfigurationError,
    CrosswalkError as CrosswalkError,
    DetectionError as DetectionError,
    PluginError as PluginError,
    ResponseValidationError as ResponseValidationError,
    ToolCallArgumentsError as ToolCallArgumentsError,
    UnknownProviderError as UnknownProviderError,
)
from crosswalk.plugin.hooks import (
    API as API,
    API_MINOR as API_MINOR,
    Access as Access,
    BatchFile as BatchFile,
    LogprobReader as LogprobReader,
    Names as Names,
    Path as Path,
    ProviderHooks as ProviderHooks,
    ProviderInfo as ProviderInfo,
    Recognition as Recognition,
    ServerTool as ServerTool,
    WayBack as WayBack,
    hookimpl as hookimpl,
)
from crosswalk.plugin.registry import (
    Dialect as Dialect,
    DialectFamily as DialectFamily,
    event_type as event_type,
    requests_of as requests_of,
    unknown_event as unknown_event,
)
from crosswalk.plugin.state import (
    CountPaths as CountPaths,
    MappingState as MappingState,
    accept_array as accept_array,
    accept_boolean as accept_boolean,
    accept_count as accept_count,
    accept_integer as accept_integer,
    accept_number as accept_number,
    accept_object as accept_object,
    accept_objects as accept_objects,
    accept_string as accept_string,
    counted as counted,
    is_number as is_number,
    leave_mistyped as leave_mistyped,
    look_at as look_at,
    look_at_cost as look_at_cost,
    look_at_count as look_at_count,
    look_at_time as look_at_time,
    require_object as require_object,
    take_array as take_array,
    take_boolean as take_boolean,
    take_count as take_count,
    take_integer as take_integer,
    take_number as take_number,
    take_object as take_object,
    take_objects as take_objects,
    take_same as take_same,
    take_same_at as take_same_at,
    take_string as take_string,
    take_strings as take_strings,
    take_whole as take_whole,
    time_of as time_of,
    wrong_type as wrong_type,
)
from crosswalk.types.delta import (
    Correction as Correction,
    ResponseDelta as ResponseDelta,
)
from crosswalk.types.json import (
    FrozenObject as FrozenObject,
    JSONObject as JSONObject,
    JSONValue as JSONValue,
    dump_json as dump_json,
    load_json as load_json,
    same_json as same_json,
    thaw as thaw,
)
from crosswalk.types.message import (
    AudioPart as AudioPart,
    CallKind as CallKind,
    ChatMessage as ChatMessage,
    ContentPart as ContentPart,
    DocumentPart as DocumentPart,
    FilePart as FilePart,
    ImagePart as ImagePart,
    Role as Role,
    SearchResultPart as SearchResultPart,
    TextPart as TextPart,
    ToolCall as ToolCall,
    ToolCallDelta as ToolCallDelta,
    VideoPart as VideoPart,
)
from crosswalk.types.response import (
    Alternative as Alternative,
    AuthenticationError as AuthenticationError,
    ChatResponse as ChatResponse,
    ContentFilterError as ContentFilterError,
    ContextOverflowError as ContextOverflowError,
    InvalidRequestError as InvalidRequestError,
    ModelUnavailableError as ModelUnavailableError,
    PermissionDeniedError as PermissionDeniedError,
    ProviderError as ProviderError,
    ProviderTimeoutError as ProviderTimeoutError,
    QuotaError as QuotaError,
    RateLimitError as RateLimitError,
    ServerError as ServerError,
    ToolCallValidationError as ToolCallValidationError,
)
from crosswalk.types.usage import (
    AttemptOutcome as AttemptOutcome,
    Cost as Cost,
    Provenance as Provenance,
    ProviderAttempt as ProviderAttempt,
    ResponseMetadata as ResponseMetadata,
    UsageDetails as UsageDetails,
    UsageInfo as UsageInfo,
)
from crosswalk.types.values import (
    Annotation as Annotation,
    CitationRef as CitationRef,
    ContentFilterCategory as ContentFilterCategory,
    ContentFilterResult as ContentFilterResult,
    ContentFilterSeverity as ContentFilterSeverity,
    ErrorInfo as ErrorInfo,
    ErrorKind as ErrorKind,
    FinishReason as FinishReason,
    IncompleteReason as IncompleteReason,
    RawEvents as RawEvents,
    SafetyAnnotation as SafetyAnnotation,
    Segment as Segment,
    SegmentType as SegmentType,
    TokenLogprob as TokenLogprob,
)
from crosswalk.wire import ollama as ollama
from crosswalk.wire.framing import (
    NEED_MORE as NEED_MORE,
    Decoder as Decoder,
    Frame as Frame,
    Limits as Limits,
    LineDecoder as LineDecoder,
    NDJSONDecoder as NDJSONDecoder,
    NeedMore as NeedMore,
    PushDecoder as PushDecoder,
)

if TYPE_CHECKING:
    from crosswalk.formats.tables import (
        OPENAI_CHAT as OPENAI_CHAT,
    )
    from crosswalk.mapping.blocks import (
        Block as Block,
        Blocks as Blocks,
        Totals as Totals,
    )
    from crosswalk.plugin.hooks import (
        CallIds as CallIds,
        Sign as Sign,
        Signed as Signed,
    )
    from crosswalk.request import (
        Adaptation as Adaptation,
        AdaptationKind as AdaptationKind,
        Asked as Asked,
        CacheMark as CacheMark,
        ChatRequest as ChatRequest,
        Given as Given,
        HostedTool as HostedTool,
        HostedToolKind as HostedToolKind,
        HTTPRequest as HTTPRequest,
        Messages as Messages,
        NamedTool as NamedTool,
        ReasoningEffort as ReasoningEffort,
        ResponseFormat as ResponseFormat,
        ToolChoice as ToolChoice,
        ToolDefinition as ToolDefinition,
        Turn as Turn,
        UnsupportedRequestError as UnsupportedRequestError,
    )
    from crosswalk.service.building import (
        OpenAIChatStyle as OpenAIChatStyle,
        build_openai_chat_request as build_openai_chat_request,
        openai_choice as openai_choice,
        openai_format as openai_format,
        openai_tool as openai_tool,
        tool_fields as tool_fields,
    )
    from crosswalk.service.model_facts import (
        signs_calls as signs_calls,
    )
    from crosswalk.service.turns import (
        NO_ANSWER as NO_ANSWER,
        Drops as Drops,
        alternating as alternating,
        arguments_object as arguments_object,
        arguments_text as arguments_text,
        cache_mark as cache_mark,
        client_tool_item as client_tool_item,
        content_parts as content_parts,
        data_url as data_url,
        details_of as details_of,
        hosted_fields as hosted_fields,
        is_of as is_of,
        known_media_type as known_media_type,
        lost_marks as lost_marks,
        mark_behind as mark_behind,
        media_type_of as media_type_of,
        message_of as message_of,
        noun_of as noun_of,
        part_marks as part_marks,
        put_options as put_options,
        reasoning_of as reasoning_of,
        refusal_of as refusal_of,
        schema_of as schema_of,
        segments_of as segments_of,
        system_text as system_text,
        system_texts as system_texts,
        text_in as text_in,
        text_of as text_of,
        tool_names as tool_names,
        unsupported_part as unsupported_part,
        with_files_told as with_files_told,
        with_results_shown as with_results_shown,
        without_silence as without_silence,
        word_of as word_of,
        words_of as words_of,
        written_mark as written_mark,
    )
    from crosswalk.service.way_back import (
        answer_state as answer_state,
        own_fields as own_fields,
        own_items as own_items,
        put_fields as put_fields,
        response_items as response_items,
        without_fields as without_fields,
        without_items as without_items,
    )
    from crosswalk.types.answer import Texts as Texts
    from crosswalk.types.json import (
        as_json_object as as_json_object,
    )
    from crosswalk.types.stream import (
        ResponseBuilder as ResponseBuilder,
        StreamEvent as StreamEvent,
        StreamEventType as StreamEventType,
    )
    from crosswalk.wire import gemini as gemini, messages as messages, responses as responses
    from crosswalk.wire.framing import (
        SSEDecoder as SSEDecoder,
        TextEventDecoder as TextEventDecoder,
    )
    from crosswalk.wire.options import (
        RequestRow as RequestRow,
        RequestTable as RequestTable,
        below as below,
    )
    from crosswalk.wire.responses import (
        call_item as call_item,
        input_part as input_part,
        read_part as read_part,
    )
else:
    # A test runner that rewrites assertions adds its own names here.
    _names = [name for name in globals() if name[0].isalpha() and name not in ("TYPE_CHECKING", "face")]
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.formats.tables": "OPENAI_CHAT",
            "crosswalk.mapping.blocks": "Block Blocks Totals",
            "crosswalk.plugin.hooks": "CallIds Sign Signed",
            "crosswalk.types.answer": "Texts",
            "crosswalk.request": (
                "Adaptation AdaptationKind Asked CacheMark ChatRequest Given HTTPRequest HostedTool HostedToolKind "
                "Messages NamedTool ReasoningEffort ResponseFormat ToolChoice ToolDefinition Turn "
                "UnsupportedRequestError"
            ),
            "crosswalk.service.building": (
                "OpenAIChatStyle build_openai_chat_request openai_choice openai_format openai_tool "
                "tool_fields"
            ),
            "crosswalk.service.model_facts": "signs_calls",
            "crosswalk.service.turns": (
                "Drops NO_ANSWER alternating arguments_object arguments_text cache_mark client_tool_item "
                "content_parts data_url details_of hosted_fields is_of known_media_type lost_marks mark_behind "
                "media_type_of "
                "message_of noun_of part_marks put_options reasoning_of refusal_of schema_of segments_of "
                "system_text system_texts text_in text_of tool_names unsupported_part with_files_told "
                "with_results_shown without_silence word_of words_of written_mark"
            ),
            "crosswalk.service.way_back": (
                "answer_state own_fields own_items put_fields response_items without_fields without_items"
            ),
            "crosswalk.types.json": "as_json_object",
            "crosswalk.types.stream": "ResponseBuilder StreamEvent StreamEventType",
            "crosswalk.wire.framing": "SSEDecoder TextEventDecoder",
            "crosswalk.wire.options": "RequestRow RequestTable below",
            "crosswalk.wire.responses": "call_item input_part read_part",
        },
        modules={
            "gemini": "crosswalk.wire.gemini",
            "messages": "crosswalk.wire.messages",
            "responses": "crosswalk.wire.responses",
        },
        beside=_names,
    )

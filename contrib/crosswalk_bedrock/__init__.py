"""Amazon Bedrock: Converse and ConverseStream, of any model.

Facts: provider document "Amazon Bedrock Converse". A stream's events may come wrapped in their name, as from SDKs, or
as frames with the name. :mod:`crosswalk_bedrock.eventstream` decodes the binary framing. Bodies of InvokeModel have the
format of the model's vendor, so the vendor's provider reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from crosswalk.plugins import (
    Access,
    BatchFile,
    CallIds,
    CountPaths,
    FinishReason,
    MappingState,
    Names,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    ServerTool,
    UnknownEventError,
    UsageInfo,
    WayBack,
    accept_count,
    accept_object,
    accept_objects,
    counted,
    error_delta,
    hookimpl,
    look_at,
    look_at_count,
    requests_of,
    require_object,
    take_end,
    take_object,
    take_objects,
    take_same,
)
from crosswalk_bedrock.events import MARK_KEYS, ContentBlocks, Event, at_home, bedrock_error
from crosswalk_bedrock.eventstream import EventStreamError, framing

if TYPE_CHECKING:
    from crosswalk.plugins import Sign

__all__ = ["Bedrock", "EventStreamError", "plugin"]

_LONGEST_MS = 10**14  # three thousand years, nearly the longest duration
_FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
    "content_filtered": FinishReason.CONTENT_FILTER,
    "malformed_model_output": FinishReason.ERROR,
    "malformed_tool_use": FinishReason.ERROR,
    "": FinishReason.ERROR,  # it ended without a reason
}


def _locate() -> str:
    from crosswalk_bedrock.eventstream import base_url  # botocore is an extra, and takes long to import

    return base_url()


def _signer(address: str) -> Sign:
    from crosswalk_bedrock.eventstream import signer

    return signer(address)


ACCESS = Access(
    base_url="https://bedrock-runtime.{region}.amazonaws.com",
    base_url_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
    api_key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    locate=_locate,
    signer=_signer,
)


class _Message:
    """The progress of a message.

    Attributes:
        event: the present event.
        blocks: its content blocks.
        has_begun: whether its start has arrived.
        has_metadata: whether the metadata after its end, with the usage, has arrived.
    """

    def __init__(self) -> None:
        self.event = Event("body", {})
        self.blocks = ContentBlocks()
        self.has_begun = False
        self.has_metadata = False

    def begin(self) -> None:
        if self.has_begun:
            raise UnknownEventError("a second message in one stream", event_type="messageStart")
        self.has_begun = True


class Bedrock:
    """The hooks for Converse and ConverseStream."""

    build_request = staticmethod(requests_of("crosswalk_bedrock.requests"))
    map_error = staticmethod(hookimpl(bedrock_error))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. Frames have padding, and SDKs wrap events without it."""
        return ProviderInfo(
            title="Amazon Bedrock",
            model_classes="crosswalk_bedrock:models.toml",
            names=Names(otel="aws.bedrock", prices="aws"),
            endpoints=("/model/{modelId}/converse", "/model/{modelId}/converse-stream"),
            documentation="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
            message_paths=("output.message", "content[]"),
            text_paths=(
                "delta.text",
                "delta.reasoningContent.text",
                "delta.toolUse.input",
                "contentBlockDelta.delta.text",
                "contentBlockDelta.delta.reasoningContent.text",
                "contentBlockDelta.delta.toolUse.input",
            ),
            timestamp_key="p",
            pieces=("output.message.content[].deltas",),
            framing=framing,
            access=ACCESS,
            way_back=WayBack(
                takes_citations=True,
                shows_pictures=True,
                moves_system=True,
                knows_failures=True,
                server_tools=(ServerTool("*server_tool_use", "*_result"),),
            ),
            # The API takes a few characters more, the models behind it do not.
            call_ids=CallIds(pattern="[a-zA-Z0-9_-]+"),
            call_names="[a-zA-Z0-9_-]{1,64}",
            # https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html; the job's
            # ``modelInvocationType`` is ``Converse``.
            batch_file=BatchFile(
                id="recordId", body="modelInput", names_endpoint=False, model="job", results="bedrock_batch"
            ),
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: certainly by names that only this API has, possibly as a bare error."""
        match event:
            case {"output": {"message": {"content": _}}, "stopReason": _} | {"contentBlockIndex": int()}:
                return Recognition.CERTAIN
            case dict() if any(_is_event(name, payload) for name, payload in event.items()):
                return Recognition.CERTAIN
            case {"message": str()} | {"Message": str()} if len(event) == 1:
                return Recognition.POSSIBLE
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        message = state.own(_Message)
        message.event = unwrapped_event = Event.of(require_object(event), state.event_name)
        payload, blocks = unwrapped_event.payload, message.blocks
        match unwrapped_event.kind:
            case "contentBlockDelta":
                block = blocks.at(payload)
                delta = require_object(payload.get("delta"), "contentBlockDelta.delta")
                yield from blocks.delta(block, delta, state)
            case "contentBlockStart":
                block = blocks.at(payload)
                start = require_object(payload.get("start"), "contentBlockStart.start")
                yield from blocks.start(block, start, state)
            case "contentBlockStop":
                yield from blocks.stop(payload)
            case "messageStart":
                message.begin()
                take_same(payload, "role", "assistant")
            case "messageStop":
                yield from blocks.flush()
                yield from take_end(payload, "stopReason", state, default="")
                if not message.has_metadata:
                    state.note("usage", Provenance.CUT)  # until it comes
            case "metadata":
                message.has_metadata = True
                state.note("usage", None)
                yield from blocks.flush()
                yield from _metadata(payload, state)
            case "error":
                yield from blocks.flush()
                yield error_delta(bedrock_error(None, payload, unwrapped_event.name))
                if unwrapped_event.wrapper is None:
                    event.clear()
                else:
                    del event[unwrapped_event.wrapper]  # extra keys are not part of the error
            case _:
                message.begin()
                sent_message = take_object(take_object(payload, "output") or {}, "message") or {}
                take_same(sent_message, "role", "assistant")
                for number, item in enumerate(take_objects(sent_message, "content")):
                    yield from blocks.whole(number, item, state)
                yield from _metadata(payload, state)
                yield from take_end(payload, "stopReason", state, default="")

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        return _FINISH_REASONS.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``.

        ``inputTokens`` is without the tokens that the cache had or got: the three make up the prompt. Amazon's own models
        count the caches under other names when they are not asked through Converse.
        """
        unwrapped_event = state.own(_Message).event
        usage = (
            accept_object(unwrapped_event.payload, "usage")
            if unwrapped_event.kind in ("metadata", "body")
            else None
        )
        if not usage:
            return None
        counts = _COUNT_PATHS.accept(usage)
        if "prompt_tokens" in counts:  # a part is not the count
            counts["prompt_tokens"] += counts.get("cached_tokens", 0) + counts.get("cache_write_tokens", 0)
        if "cacheDetails" in usage:
            counts |= _lifetimes(usage)
        info = counted(counts, state)
        if "serverToolUsage" in usage:
            accept_object(usage, "serverToolUsage")  # mostly empty, which carries no information
        look_at_count(usage, "totalTokens")
        take_same(usage, "totalTokens", None if info is None else info.total_tokens)
        return info

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``. The residue of a stream's events has the paths of a body."""
        message = state.own(_Message)
        return at_home(event, message.event, message.blocks.last)


_COUNT_PATHS: Final = CountPaths(
    {
        "prompt_tokens": "inputTokens",
        "completion_tokens": "outputTokens",
        "cached_tokens": ("cacheReadInputTokens", "cacheReadInputTokenCount"),
        "cache_write_tokens": ("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
    }
)


def _lifetimes(usage: dict[str, Any]) -> dict[str, int]:
    """Take the tokens written to the cache by lifetime. Other lifetimes stay in the usage."""
    counts: dict[str, int] = {}
    for item in accept_objects(usage, "cacheDetails"):
        ttl = item.get("ttl")
        name = f"cache_write_{ttl}_tokens"
        if (
            ttl in ("5m", "1h")
            and name not in counts
            and (count := accept_count(item, "inputTokens")) is not None
        ):
            counts[name] = count
            del item["ttl"]
    return counts


def _metadata(payload: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Take the model, the duration, and the findings of a guardrail.

    The duration stays in the extensions as well, because a measured one differs.
    """
    for name, key in (("ResponseMetadata", "RequestId"), ("$metadata", "requestId")):
        if name in payload:
            state.take_identity(take_object(payload, name) or {}, id=key)
    metrics = accept_object(payload, "metrics") or {}
    latency = look_at_count(metrics, "latencyMs")
    if latency is not None and latency <= _LONGEST_MS:
        state.request_duration = timedelta(milliseconds=latency)
    if "trace" in payload and (trace := accept_object(payload, "trace")):
        state.take_identity(take_object(trace, "promptRouter") or {}, model="invokedModelId")
        for segment in guardrail_segments(trace):
            yield ResponseDelta(segment=segment)


def _is_event(name: str, payload: Any) -> bool:
    """Return whether *payload* under *name* is a wrapped event or exception."""
    is_exception = name.endswith("Exception")
    return type(payload) is dict and (
        is_exception or (name in MARK_KEYS and payload.keys() >= {*MARK_KEYS[name]})
    )


# The findings of a guardrail in the prompt and in the answer (section 8). The trace stays in the extensions completely.
# The findings are also segments.


_FINDING_KEYS = (
    # the policy, its list, what names the harm, how bad it is
    ("topicPolicy", "topics", "name", None),
    ("contentPolicy", "filters", "type", "confidence"),
    ("wordPolicy", "customWords", None, None),
    ("wordPolicy", "managedWordLists", "type", None),
    ("sensitiveInformationPolicy", "piiEntities", "type", None),
    ("sensitiveInformationPolicy", "regexes", "name", None),
    ("contextualGroundingPolicy", "filters", "type", None),
)
_HARMLESS_ACTIONS = (None, "NONE")


def guardrail_segments(trace: dict[str, Any]) -> Iterator[Segment]:
    """The segments for what the guardrail of *trace* acted on: one for the prompt, one for the answer."""
    guardrail = look_at(trace, "guardrail", dict) or {}
    for name, target in (("inputAssessment", "prompt"), ("outputAssessments", "answer")):
        assessments = look_at(guardrail, name, dict) or {}
        findings = [
            finding
            for id in [*assessments]
            for assessment in _objects(assessments, id)
            for finding in _findings(assessment)
        ]
        if findings:
            yield Segment(SegmentType.SAFETY, "", {"of": target}, tuple(findings))


def _findings(assessment: dict[str, Any]) -> Iterator[SafetyAnnotation]:
    for policy, list_key, name_key, level_key in _FINDING_KEYS:
        for finding in _objects(look_at(assessment, policy, dict) or {}, list_key):
            action = look_at(finding, "action", str)
            if action not in _HARMLESS_ACTIONS:
                category = look_at(finding, name_key, str) if name_key else None
                severity = look_at(finding, level_key, str) if level_key else None
                yield SafetyAnnotation(category or list_key, severity, blocked=action == "BLOCKED")


def _objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the object under *key*, or those of an array. They stay, like an empty array."""
    value = container.get(key)
    if type(value) is list:
        return accept_objects(container, key) if value else []
    item = look_at(container, key, dict)
    return [item] if item else []


plugin = Bedrock()

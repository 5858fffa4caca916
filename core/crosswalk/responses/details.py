"""What a response tells about itself beside its output: errors, moderation, the cache, and what the server changed."""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.content import InputContent
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.vocabulary import IncompleteReason

__all__ = [
    "AccessPrograms",
    "CacheHit",
    "CacheMiss",
    "ComparisonResponseNotFound",
    "Conversation",
    "DiagnosticsUnavailable",
    "ErrorBody",
    "ErrorDetail",
    "ImageOptions",
    "IncompleteDetails",
    "InputTransformation",
    "Misalignment",
    "MisalignmentSteer",
    "Moderation",
    "ModerationError",
    "ModerationOutcome",
    "ModerationResult",
    "PromptCacheDiagnostics",
    "PromptCacheOptions",
    "ResponseError",
    "ResponsePrompt",
    "UnknownCacheDiagnostics",
    "UnknownModeration",
    "UnknownTransformation",
]


@record
class MisalignmentSteer(Record):
    """How to go on after a stop for misalignment."""

    message: str


@record
class Misalignment(Record):
    """Why the server stopped what looked misaligned.

    Attributes:
        error_type: the kind of activity.
        detailed_explanation: more about it.
        review_target: what to look at.
        steer: how to go on.
    """

    error_type: str | None = None
    detailed_explanation: str | None = None
    review_target: str | None = None
    steer: MisalignmentSteer | None = None


@record
class ErrorDetail(Record):
    """An error as HTTP bodies and some streams hold it, under ``error``.

    Attributes:
        message: what happened.
        type: the kind of error.
        code: which error; a number by some servers.
        param: which parameter is at fault.
        headers: HTTP headers that came with it; on a WebSocket.
        misalignment: see there.
    """

    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    headers: Mapping[str, str] | None = None
    misalignment: Misalignment | None = None


@record
class ErrorBody(Record):
    """The body of an answer whose HTTP status is an error.

    Attributes:
        error: the error; some servers send text, or what an :class:`ErrorDetail` holds beside it.
    """

    error: ErrorDetail | str | None = None


@record
class ResponseError(Record):
    """Why a response failed.

    Attributes:
        code: which error, such as ``rate_limit_exceeded``; a number by some servers.
        message: what happened.
        param: which parameter is at fault.
        type: the kind of error.
        misalignment: see there.
    """

    code: str | int | None = None
    message: str
    param: str | None = None
    type: str | None = None
    misalignment: Misalignment | None = None


@record
class IncompleteDetails(Record):
    """Why a response is incomplete."""

    reason: IncompleteReason | None = None


@record
class AccessPrograms(Record):
    """Special access that the request was given."""

    cyber: str | None = None


@record
class Conversation(Record):
    """The conversation that a response belongs to."""

    id: str


@record
class ImageOptions(Record):
    """What is done with images of earlier turns: ``enabled``, ``disabled`` or, asked for, ``auto``."""

    context_compression: str | None = None


@record
class InputTransformation(Record):
    """Reasoning that the server took out of the input.

    Attributes:
        id: the item.
        action: ``removed``.
        reason: such as ``model_mismatch``.
    """

    type: Literal["reasoning"] = "reasoning"
    id: str
    action: str
    reason: str


@record
class UnknownTransformation(Unknown, Record):
    """A change of the input of a type that nobody registered."""

    family: ClassVar[str] = "input transformation"
    type: str | None = None


@record
class ModerationResult(Record):
    """What a moderation model found.

    Attributes:
        model: the moderation model.
        flagged: whether anything was found.
        categories: what was found.
        category_scores: how sure it is, 0 to 1.
        category_applied_input_types: whether text or an image was looked at.
    """

    type: Literal["moderation_result"] = "moderation_result"
    model: str
    flagged: bool
    categories: Mapping[str, bool]
    category_scores: Mapping[str, float]
    category_applied_input_types: Mapping[str, tuple[str, ...]]


@record
class ModerationError(Record):
    """Why there was no moderation."""

    type: Literal["error"] = "error"
    code: str
    message: str


@record
class UnknownModeration(Unknown, Record):
    """An outcome of a moderation of a type that nobody registered."""

    family: ClassVar[str] = "moderation outcome"
    type: str | None = None


ModerationOutcome: TypeAlias = ModerationResult | ModerationError | UnknownModeration
"""What came of a moderation."""


@record
class Moderation(Record):
    """The moderation of input and output."""

    input: ModerationOutcome | None = None
    output: ModerationOutcome | None = None


@record
class ResponsePrompt(Record):
    """A stored prompt.

    Attributes:
        id: which.
        version: which version of it.
        variables: what stands in its places: text or parts.
    """

    id: str
    version: str | None = None
    variables: Mapping[str, str | InputContent] | None = None


@record
class CacheMiss(Record):
    """Less of the prompt was cached than of the response that was compared.

    Attributes:
        reason: what differs, such as ``tools_changed``.
        cache_missed_tokens: how many tokens were not read from the cache.
        comparison_reusable_tokens: how many of that response's could have been.
    """

    type: Literal["cache_miss"] = "cache_miss"
    reason: str
    cache_missed_tokens: int
    comparison_reusable_tokens: int | None = None


@record
class CacheHit(Record):
    """All was cached that could be."""

    type: Literal["cache_hit"] = "cache_hit"


@record
class ComparisonResponseNotFound(Record):
    """There is no response with the id that was to be compared."""

    type: Literal["comparison_response_not_found"] = "comparison_response_not_found"


@record
class DiagnosticsUnavailable(Record):
    """Nothing is known about the cache."""

    type: Literal["unavailable"] = "unavailable"


@record
class UnknownCacheDiagnostics(Unknown, Record):
    """A diagnosis of the cache of a type that nobody registered."""

    family: ClassVar[str] = "cache diagnostics"
    type: str | None = None


PromptCacheDiagnostics: TypeAlias = (
    CacheMiss | CacheHit | ComparisonResponseNotFound | DiagnosticsUnavailable | UnknownCacheDiagnostics
)
"""Why the prompt was cached or not."""


@record
class PromptCacheOptions(Record):
    """How the prompt is cached.

    Attributes:
        mode: ``implicit`` or ``explicit``.
        ttl: how long, such as ``30m``.
        comparison_response_id: the response to compare with.
        prewarm: whether only the cache is filled; in requests.
    """

    mode: str | None = None
    ttl: str | None = None
    comparison_response_id: str | None = None
    prewarm: bool | None = None

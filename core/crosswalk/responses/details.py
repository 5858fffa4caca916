"""The details of a response other than its output: errors, moderation, the cache, and the server's changes."""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.content import InputContent
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.vocabulary import IncompleteReason


@record
class MisalignmentSteer(Record):
    """How to go on after a stop for misalignment."""

    message: str


@record
class Misalignment(Record):
    """Why the server stopped activity that looked misaligned.

    Attributes:
        error_type: the kind of activity.
        detailed_explanation: more about it.
        review_target: the part to review.
        steer: how to go on.
    """

    error_type: str | None = None
    detailed_explanation: str | None = None
    review_target: str | None = None
    steer: MisalignmentSteer | None = None


@record
class ErrorDetail(Record):
    """An error in the ``error`` member of HTTP bodies and some streams.

    Attributes:
        message: the description.
        type: the kind of error.
        code: the error code, a number on some servers.
        param: the parameter at fault.
        headers: HTTP headers that came with it, on a WebSocket.
        misalignment: details of a stop for misalignment.
    """

    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    headers: Mapping[str, str] | None = None
    misalignment: Misalignment | None = None


@record
class ErrorBody(Record):
    """The body of an answer with an HTTP error status.

    Attributes:
        error: the error. Some servers send text, or put the fields of :class:`ErrorDetail` next to it.
    """

    error: ErrorDetail | str | None = None


@record
class ResponseError(Record):
    """Why a response failed.

    Attributes:
        code: the error code, such as ``rate_limit_exceeded``, a number on some servers.
        message: the description.
        param: the parameter at fault.
        type: the kind of error.
        misalignment: details of a stop for misalignment.
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
    """Special access that was granted to the request."""

    cyber: str | None = None


@record
class Conversation(Record):
    """The conversation that a response belongs to."""

    id: str


@record
class ImageOptions(Record):
    """The treatment of images in earlier messages: ``enabled``, ``disabled`` or, in a request, ``auto``."""

    context_compression: str | None = None


@record
class InputTransformation(Record):
    """Reasoning that the server removed from the input.

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
    """A change of the input of an unregistered type."""

    family: ClassVar[str] = "input transformation"
    type: str | None = None


@record
class ModerationResult(Record):
    """The result of a moderation model.

    Attributes:
        model: the moderation model.
        flagged: whether the content was flagged.
        categories: the categories, with whether each was flagged.
        category_scores: the confidence in each, 0 to 1.
        category_applied_input_types: whether text or an image was examined.
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
    """An outcome of a moderation of an unregistered type."""

    family: ClassVar[str] = "moderation outcome"
    type: str | None = None


ModerationOutcome: TypeAlias = ModerationResult | ModerationError | UnknownModeration
"""The outcome of a moderation."""


@record
class Moderation(Record):
    """The moderation of input and output."""

    input: ModerationOutcome | None = None
    output: ModerationOutcome | None = None


@record
class ResponsePrompt(Record):
    """A stored prompt.

    Attributes:
        id: its id.
        version: its version.
        variables: the values of its variables: text or parts.
    """

    id: str
    version: str | None = None
    variables: Mapping[str, str | InputContent] | None = None


@record
class CacheMiss(Record):
    """Less of the prompt was cached than for the response in comparison.

    Attributes:
        reason: the difference, such as ``tools_changed``.
        cache_missed_tokens: the number of tokens that were not read from the cache.
        comparison_reusable_tokens: the number of that response's tokens that could have been read.
    """

    type: Literal["cache_miss"] = "cache_miss"
    reason: str
    cache_missed_tokens: int
    comparison_reusable_tokens: int | None = None


@record
class CacheHit(Record):
    """The prompt was cached as far as possible."""

    type: Literal["cache_hit"] = "cache_hit"


@record
class ComparisonResponseNotFound(Record):
    """The response to compare with does not exist."""

    type: Literal["comparison_response_not_found"] = "comparison_response_not_found"


@record
class DiagnosticsUnavailable(Record):
    """The state of the cache is unknown."""

    type: Literal["unavailable"] = "unavailable"


@record
class UnknownCacheDiagnostics(Unknown, Record):
    """A diagnosis of the cache of an unregistered type."""

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
        prewarm: in requests, whether only the cache is filled.
    """

    mode: str | None = None
    ttl: str | None = None
    comparison_response_id: str | None = None
    prewarm: bool | None = None

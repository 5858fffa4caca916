"""The state of one answer while it is received: provider, choices, usage, extensions. Each fact is stored once.

Deltas are added to it, and it returns the response that they make. :class:`~crosswalk.types.accumulator.DeltaAccumulator`
adds deltas from several threads. The state of a mapping (``crosswalk.plugin.state``) is an answer, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, TypeVar

import orjson

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import clean_message
from crosswalk.types._value import unchecked
from crosswalk.types.choice import Choice
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.error_info import ErrorInfo, ErrorKind
from crosswalk.types.error_segment import NO_CAUSE, error_segment
from crosswalk.types.filter import ContentFilterCategory, ContentFilterResult
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import EMPTY_OBJECT, adopted, dump_json
from crosswalk.types.merge import PIECES, Arrays, MergeRules, Placed, copy_json, merge, placed
from crosswalk.types.metadata import Provenance, ResponseMetadata
from crosswalk.types.raw import NO_RAW_EVENTS, RawEvents
from crosswalk.types.response import (
    Alternative,
    ChatResponse,
    as_utc,
    counted_tokens,
    new_id,
    now,
)
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.usage import UsageDetails, UsageInfo, later_usage

T = TypeVar("T")

_PLAIN: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
PARTS: Final = ("prompt_tokens", "completion_tokens")
"""The counts that every report of usage should contain."""
_WHOLES: Final = {
    "cached_tokens": "prompt_tokens",
    "cache_write_tokens": "prompt_tokens",
    "reasoning_tokens": "completion_tokens",
}
"""The count that each count is a part of. A server with a part above its whole counts differently than it promises."""
_DETAIL_WHOLES: Final = {
    **{f"{modality}_input_tokens": "prompt_tokens" for modality in ("text", "audio", "image", "video")},
    **{f"{modality}_output_tokens": "completion_tokens" for modality in ("text", "audio", "image", "video")},
    **{f"{modality}_cache_read_tokens": "cached_tokens" for modality in ("text", "audio", "image", "video")},
    "cache_write_5m_tokens": "cache_write_tokens",
    "cache_write_1h_tokens": "cache_write_tokens",
}
"""The same for the details."""
_ZERO: Final = timedelta(0)
_ABSENT: Final = Provenance.ABSENT  # an enum's members are slow to look up
_SYNTHETIC: Final = Provenance.SYNTHETIC
_ERROR: Final = FinishReason.ERROR
_WHOLE: Final = (FinishReason.STOP, FinishReason.TOOL_CALLS)


class Answer:
    """One answer while it comes in.

    Args:
        provider: the provider id.

    Attributes:
        provider: the provider id.
        id: the provider's id of the response, or ``None`` until it sends one.
        model: the model's name, or ``None`` until the provider sends one.
        created: the provider's time of creation, or ``None`` until it sends one.
        request_duration: from request to end, measured or reported, or ``None`` if neither.
        time_to_first_token: from request to first token, or ``None`` if it was not measured.
        provenance: canonical path to why its value is not the provider's own word.
        verdicts: the worst verdict of the provider's moderation in each category.
        choices: the answers that have begun, by number.
        usage: the counts so far, or ``None`` before the first report.
        is_checked: whether each value is checked before it is put in, so that the response need not check all of them again.
        delta_count: the number of deltas that were added, which is the index of the next one.
        raw_events: the provider's bytes, event by event.
        id_factory: makes an id if the provider sends none.
        clock: returns the time of creation if the provider sends none.
    """

    id: str | None = None
    model: str | None = None
    created: datetime | None = None
    request_duration: timedelta | None = None
    time_to_first_token: timedelta | None = None
    usage: UsageInfo | None = None
    delta_count = 0
    is_checked = False
    _is_shared = False  # whether a delta holds the extensions themselves

    def __init__(self, provider: str = "unknown") -> None:
        self.provider = provider
        self.provenance: dict[str, Provenance] = {}
        self.verdicts: dict[ContentFilterCategory, ContentFilterResult] = {}
        self.choices: dict[int, Choice] = {}
        self.raw_events: list[bytes] = []
        self.id_factory: Callable[[], str] = new_id
        self.clock: Callable[[], datetime] = now
        self._extensions: dict[str, Any] = {}
        self._arrays = Arrays()

    def choice(self, number: int) -> Choice:
        """Return choice *number*, and begin it if it has not begun yet."""
        result = self.choices.get(number)
        if result is None:
            result = self.choices[number] = Choice()
        return result

    @property
    def others(self) -> list[int]:
        """Return the numbers of the choices after the first."""
        return sorted(self.choices.keys() - {0})

    def add(self, delta: ResponseDelta) -> None:
        """Add all fields of *delta*, the next one in order."""
        self.delta_count += 1
        self.choice(delta.choice).add(delta)
        if delta.usage is not None:
            self.usage = later_usage(self.usage, delta.usage)
        if delta.extensions is not EMPTY_OBJECT:
            self.extend(delta.extensions._data, PIECES)

    def extend(self, more: dict[str, Any], rules: MergeRules) -> dict[str, Any]:
        """Add *more* to the extensions, and return the part of it that is new. See :func:`crosswalk.types.merge.merge`."""
        if not self._extensions:
            # Stored unchanged: a body is one event, and may carry a lot.
            self._extensions, self._is_shared = more, True
            return more
        known = self.extensions if self._is_shared else self._extensions
        return merge(known, more, self._arrays, rules)

    @property
    def has_mixed_arrays(self) -> bool:
        """Whether an array of the extensions has items with an ``index`` and others."""
        return self._arrays.is_mixed

    def placed(self, more: dict[str, Any], rules: MergeRules) -> Iterator[Placed]:
        """Yield each object and array in *more*, with its path once :meth:`extend` has added it."""
        return placed(self.extensions, more, self._arrays, rules)

    @property
    def extensions(self) -> dict[str, Any]:
        """The merged fields without a typed counterpart so far. The owner may add to them."""
        if self._is_shared:
            self._extensions, self._is_shared = copy_json(self._extensions), False
        return self._extensions

    @property
    def has_json_extensions(self) -> bool:
        """Return whether the extensions are JSON at any depth. A provider sends nothing else. A hook may."""
        try:
            written = dump_json(self._extensions, option=_PLAIN)
        except TypeError as error:
            return "ecursion" in str(error)
        # orjson writes null for NaN and infinity.
        return b"null" not in written or not _holds_non_finite(self._extensions)

    def response(self, finish: FinishReason, errors: tuple[Segment, ...] = ()) -> ChatResponse:
        """Return the content so far as a response that ended with *finish*. The *errors* come last.

        Raises:
            ResponseValidationError: a choice has not ended, or a tool call has no name. Never raised for ``error``.
        """
        # Sorted, so that it is the same however often each was noted and taken back.
        provenance = dict(sorted(self.provenance.items())) if self.provenance else {}
        failed = finish is _ERROR
        primary = self.choices.get(0) or Choice()
        built = primary.build("", 0, provenance, partial=finish not in _WHOLE)
        alternatives: tuple[Alternative, ...] = ()
        if len(self.choices) > 1:
            alternatives = tuple(
                [
                    self._alternative(position, number, provenance, failed=failed)
                    for position, number in enumerate(self.others)
                ]
            )
        segments = (*built.segments, *errors) if errors else built.segments
        refusal = built.refusal
        if failed:
            refusal = _error_text(segments) or refusal or NO_CAUSE
        duration = self.request_duration
        self._note_what_is_missing(provenance, duration)
        usage = self.usage or UsageInfo.EMPTY
        model = self.model or "unknown"
        id = self.id or self.id_factory()
        # A plugin may set any of these itself.
        is_checked = (
            self.is_checked and type(id) is type(model) is str and set(map(type, provenance)) <= {str}
        )
        make = unchecked if is_checked and type(usage) is UsageInfo else _constructed
        metadata = make(
            ResponseMetadata,
            provider_id=self.provider,
            model_id=model,
            request_duration=duration or _ZERO,
            time_to_first_token=self.time_to_first_token,
            extensions=adopted(self._extensions if self._is_shared else copy_json(self._extensions)),
            provenance=MappingProxyType(provenance),
            completion_tokens=counted_tokens(usage, provenance),
        )
        return make(
            ChatResponse,
            id=id,
            message=built.message,
            finish_reason=finish,
            usage=usage,
            metadata=metadata,
            created=self.created or as_utc(self.clock()),
            model=model,
            refusal=refusal,
            content_filter_results=tuple(self.verdicts.values()) or None,
            raw_finish_reason=primary.raw_finish,
            segments=segments,
            logprobs=built.logprobs,
            alternatives=alternatives,
            raw_events=RawEvents(self.raw_events) if self.raw_events else NO_RAW_EVENTS,
        )

    def partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Return everything so far as an error response, for an answer that will not become complete."""
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        return self.response(FinishReason.ERROR, (error_segment(info),))

    def _alternative(
        self, place: int, number: int, provenance: dict[str, Provenance], *, failed: bool
    ) -> Alternative:
        choice = self.choices[number]
        if choice.finish is None and not failed:
            raise ResponseValidationError(
                f"Cannot build incomplete response: choice {number} has not ended",
                code="ACODE-RSP-008",
            )
        finish = choice.finish or FinishReason.ERROR
        path = f"alternatives[{place}]."
        built = choice.build(path, number, provenance, partial=failed or finish not in _WHOLE)
        return Alternative(
            index=number,
            message=built.message,
            finish_reason=finish,
            raw_finish_reason=choice.raw_finish,
            refusal=built.refusal,
            segments=built.segments,
            logprobs=built.logprobs,
        )

    def _note_what_is_missing(self, provenance: dict[str, Provenance], duration: timedelta | None) -> None:
        if self.usage is None:
            provenance.setdefault("usage", _ABSENT)
        else:
            if _ABSENT in (provenance.get("usage.prompt_tokens"), provenance.get("usage.completion_tokens")):
                provenance["usage.total_tokens"] = _ABSENT  # one count of two is not their total
            self._mark_parts(self.usage, _WHOLES, "usage.", provenance)
            if self.usage.details is not UsageDetails.EMPTY:
                self._mark_parts(self.usage.details, _DETAIL_WHOLES, "usage.details.", provenance)
        if self.id is None:
            provenance["id"] = _SYNTHETIC
        if self.created is None:
            provenance["created"] = _SYNTHETIC
        if self.model is None:
            provenance["model"] = _ABSENT
        if duration is None:
            provenance["metadata.request_duration"] = _ABSENT

    def _mark_parts(
        self, counts: object, wholes: Mapping[str, str], path: str, provenance: dict[str, Provenance]
    ) -> None:
        """Mark each of the *counts* that is above the whole that it is a part of."""
        for part, name in wholes.items():
            count = getattr(counts, part)
            if count is None or provenance.get(f"usage.{name}") is _ABSENT:
                continue
            whole = getattr(self.usage, name)
            if whole is not None and count > whole:
                provenance.setdefault(path + part, Provenance.MISTYPED)


def _constructed(cls: type[T], **fields: Any) -> T:
    return cls(**fields)


def _holds_non_finite(value: Any) -> bool:
    """Whether a float in *value*, made of what orjson writes as it is, is NaN or infinite."""
    remaining = [value]
    for container in remaining:  # which grows
        for item in container.values() if type(container) is dict else container:
            kind = type(item)
            if kind is float:
                if not isfinite(item):
                    return True
            elif (kind is dict or kind is list or kind is tuple) and item:
                remaining.append(item)
    return False


def _error_text(segments: Iterable[Segment]) -> str | None:
    return next((clean_message(s.content) for s in segments if s.type is SegmentType.ERROR), None)

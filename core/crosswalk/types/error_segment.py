"""The segment that stores a provider's report of its failure."""

from __future__ import annotations

from crosswalk.types.error_info import ErrorInfo, ErrorKind
from crosswalk.types.segment import Segment, SegmentType

NO_CAUSE = "the generation failed"


def error_segment(info: ErrorInfo) -> Segment:
    """Return the segment that stores *info* in a response, and that :attr:`ChatResponse.error_info` reads back."""
    payload = {
        "kind": info.kind.value,
        "retryable": info.retryable,
        "status": info.status,
        "code": info.code,
        "raw": info.raw,
    }
    return Segment(SegmentType.ERROR, info.message, {k: v for k, v in payload.items() if v is not None})


def read_error(segment: Segment) -> ErrorInfo:
    """Read the fields that :func:`error_segment` stores. A plugin's segment, or a stored one, may contain anything."""
    raw = segment.metadata.thawed()
    kind, status, code = raw.get("kind"), raw.get("status"), raw.get("code")
    return ErrorInfo(
        kind=kind if kind in list(ErrorKind) else ErrorKind.UNKNOWN,
        message=segment.content or NO_CAUSE,
        retryable=raw.get("retryable") is True,
        status=status if type(status) is int else None,
        code=code if type(code) is str else None,
        raw=raw.get("raw"),
    )

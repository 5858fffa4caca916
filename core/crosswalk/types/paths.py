"""The paths of a response's canonical fields, as ``metadata.provenance`` writes them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import attrs

from crosswalk.types.filter import ContentFilterResult
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.message import ChatMessage
from crosswalk.types.metadata import ProviderAttempt, ResponseMetadata
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.segment import Annotation, Segment
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import Cost, UsageInfo

__all__ = ["is_canonical"]

_HELD: Final[dict[str, Any]] = {
    "alternatives": Alternative,
    "annotations": Annotation,
    "attempts": ProviderAttempt,
    "content_filter_results": ContentFilterResult,
    "cost": Cost,
    "logprobs": TokenLogprob,
    "message": ChatMessage,
    "metadata": ResponseMetadata,
    "segments": Segment,
    "tool_calls": ToolCall,
    "top": TokenLogprob,
    "usage": UsageInfo,
}
"""The class of what stands in a field that has fields of its own; an item's, where it is a list."""

_STEP: Final = re.compile(r"(\w+)(?:\[\d+\])?")


@lru_cache(maxsize=256)
def is_canonical(path: str) -> bool:
    """Whether a response has a field, or a computed one, at *path*, as ``message.tool_calls[0].id``.

    In the extensions, and in the metadata of a segment, anything may stand.
    """
    kind: Any = ChatResponse
    for step in path.split("."):
        found = _STEP.match(step)
        name = found[1] if found else ""
        if name == "extensions" and kind is ResponseMetadata:
            return True
        is_whole = found is not None and found.end() == len(step)
        if kind is None or not is_whole or not _has(kind, name):
            return False
        if name == "metadata" and kind is Segment:
            return True
        kind = _HELD.get(name)
    return True


def _has(kind: Any, name: str) -> bool:
    return name in attrs.fields_dict(kind) or isinstance(getattr(kind, name, None), property)

"""Ollama's own form on the wire: the words for the end of an answer, where the counts stand, what a line begins with.

Plain data, known once: the plugin that reads the form and the writer of the conversion both work by it.
Facts: provider document "Ollama", sections 2 to 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crosswalk.types.values import FinishReason

__all__ = ["COUNTS", "FINISH_REASONS"]

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "stop": FinishReason.STOP,
        "length": FinishReason.LENGTH,
        "load": FinishReason.STOP,
        "unload": FinishReason.STOP,
    }
)
"""What a ``done_reason`` means; the first word for each meaning is written."""

COUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {"prompt_tokens": "prompt_eval_count", "completion_tokens": "eval_count"}
)
"""Where the last line says the counts."""

"""Ollama's OpenAI layer: ``/v1/chat/completions`` and ``/v1/completions`` (section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk.plugins import FinishReason, OpenAIChatDialect, Recognition

__all__ = ["OpenAILayer"]


class OpenAILayer(OpenAIChatDialect):
    """OpenAI's dialect as Ollama speaks it.

    A runner's failure in mid-stream leaves no trace but a missing end, which the reader reports.
    """

    title: ClassVar[str] = "Ollama (OpenAI layer)"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {
            **OpenAIChatDialect.finish_reasons,
            "load": FinishReason.STOP,
            "unload": FinishReason.STOP,
        }
    )

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is of this layer: it has a fingerprint of its own."""
        found = super().recognizes(event)
        if found is not Recognition.NO and event.get("system_fingerprint") == "fp_ollama":
            return Recognition.CERTAIN
        return found

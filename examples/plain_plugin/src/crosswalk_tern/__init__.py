"""Tern for Crosswalk: its answers are read by a table alone, and it can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from crosswalk.plugins import (
    CREATED,
    FINISH,
    ID,
    MODEL,
    REASONING,
    TEXT,
    Access,
    FieldTable,
    FinishReason,
    TableDialect,
    calls,
    count,
    requests_of,
    same,
)


class TernPlugin(TableDialect):
    """The fields of Tern. What has no row reaches the response's extensions as it was sent."""

    title = "Tern"
    api = "1.2"
    endpoints = ("/v1/tell",)
    access = Access.by_name("http://127.0.0.1:7471", "TERN")
    sentinel = True
    marks = ("said.by",)
    fields = FieldTable(
        {
            "run": ID,
            "engine": MODEL,
            "born": CREATED,
            "said.by": same("tern"),
            "said.thought": REASONING,
            "said.text": TEXT,
            "acts": calls(name="tool", arguments="with"),
            "why": FINISH,
            "used.read": count("prompt_tokens"),
            "used.kept": count("cached_tokens"),
            "used.wrote": count("completion_tokens"),
            "used.thought": count("reasoning_tokens"),
        }
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        "done": FinishReason.STOP,
        "acted": FinishReason.TOOL_CALLS,
        "full": FinishReason.LENGTH,
    }
    build_request = staticmethod(requests_of("crosswalk_tern.requests"))


plugin = TernPlugin()

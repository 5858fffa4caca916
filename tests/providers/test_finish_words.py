"""Which finish words mean an ordinary end: every word of every table, before every provider.

A word that says nothing of the end, or that no mapping knows, is never among them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import pytest

from crosswalk import FinishReason
from crosswalk.plugin.registry import registry

PROVIDERS: Final = sorted(registry.names())
MAPPERS: Final = {name: registry.mapper(name) for name in PROVIDERS}  # which imports the plugins
UNSTATED: Final = [
    "",
    "0",
    "null",
    "none",
    "unknown",
    "UNKNOWN",
    "unspecified",
    "UNSPECIFIED",
    "other",
    "novel",
]
NO_WORD: Final = ""
"""How a mapping writes the end of a format that has no word for it, or of an answer without the field of the word. The finish
reason is then marked as derived."""
ENDS: Final = {
    "anthropic": {"compaction", "end_turn", "pause_turn", "stop_sequence"},
    "bedrock": {"end_turn", "stop_sequence"},
    "cloudflare": {NO_WORD},
    "cohere": {NO_WORD, "COMPLETE", "STOP_SEQUENCE"},
    "gemini": {"1", "STOP", "completed"},
    "llamacpp": {NO_WORD, "eos", "stopped_eos", "stopped_word", "word"},
    "lmstudio": {NO_WORD, "stop"},
    "mistral": {NO_WORD, "stop"},
    "ollama": {"load", "stop", "unload"},
    "openai_responses": {"completed"},
    "tgi": {NO_WORD, "eos_token", "stop_sequence"},
    "together": {"eos", "stop"},
    "xai": {NO_WORD, "stop"},
}
"""The words for an ordinary end. The other providers have OpenAI's ``stop`` alone."""


def values(holder: Any) -> Iterator[Any]:
    for value in vars(holder).values():
        yield value
        if isinstance(value, type) and isinstance(holder, ModuleType):
            yield from values(value)


def words() -> set[str]:
    """The words of each table of finish words in the shipped code."""
    modules = [module for name, module in sys.modules.items() if name.startswith("crosswalk")]
    tables = [table for module in modules for table in values(module) if isinstance(table, Mapping)]
    return {
        word
        for table in tables
        for word, meaning in table.items()
        if isinstance(word, str) and isinstance(meaning, FinishReason)
    }


WORDS: Final = sorted({*words(), *UNSTATED, "FINISH_REASON_UNSPECIFIED"})


def test_the_tables_are_found() -> None:
    assert {word for ends in ENDS.values() for word in ends} <= set(WORDS)
    assert {"malformed_function_call", "ERROR_TOXIC", "guardrail_intervened", "sensitive"} <= set(WORDS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_these_words_are_an_ordinary_end(provider: str) -> None:
    mapper = MAPPERS[provider]
    found = {
        word for word in WORDS if mapper.map_finish_reason(word, mapper.new_state()) is FinishReason.STOP
    }
    assert found == ENDS.get(provider, {"stop"})

"""The finish word of the provider behind an aggregator, if the aggregator's own word is less exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from crosswalk.errors import PluginError
from crosswalk.mapping.failures import error_delta, error_info
from crosswalk.plugin.registry import registry
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.values import PAUSES, FinishReason

NATIVE: Final = "native_finish_reason"
"""The keys of the word in OpenRouter's answers and in services in front of it."""


def native_end(
    choice: dict[str, Any],
    index: int,
    own: Mapping[str, FinishReason],
    speaks: Iterable[str],
    state: MappingState,
) -> ResponseDelta | None:
    """Return the end of *choice* in its native word, or ``None`` if the word that was read is as exact.

    Args:
        choice: the choice. Its native word stays, and reaches the extensions.
        index: its number.
        own: the finish words of the dialect that reads the choice.
        speaks: the providers to try before the other shipped ones.
        state: the state of this answer.
    """
    word = choice[NATIVE]
    if not isinstance(word, str) or not word:
        return None
    reason = own.get(word) or _meaning(word, speaks)
    if reason is FinishReason.ERROR:
        message = f"the provider ended the answer with {word[:60]!r}"
        return error_delta(error_info(None, {"code": word, "message": message}))
    end = state.ends.get(index)
    if reason is None or end is None:
        return None
    if reason is not FinishReason.STOP:
        return ResponseDelta(finish_reason=reason, choice=index)
    if word in PAUSES and end.reason is reason and end.raw not in PAUSES:
        choice["finish_reason"] = end.raw
        return ResponseDelta(finish_reason=reason, raw_finish_reason=word, choice=index)
    return None


def _meaning(word: str, speaks: Iterable[str]) -> FinishReason | None:
    """Return the meaning of *word* for the first shipped provider that declares it. Canonical words keep their meaning.

    Only shipped providers count, so that no installed plugin changes the end of another provider's answer.
    """
    with suppress(ValueError):
        return FinishReason(word)
    for name in dict.fromkeys((*speaks, *registry.names())):
        with suppress(PluginError):  # it is not shipped, or broken
            mapper = registry.shipped(name)
            reason = mapper.map_finish_reason(word, mapper.new_state())  # of its own first dialect
            if reason is not None:
                return reason
    return None

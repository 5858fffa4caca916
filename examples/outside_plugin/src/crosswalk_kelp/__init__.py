"""Kelp: its answers, whole and streamed, for Crosswalk."""

from __future__ import annotations

from typing import Any

from crosswalk import ErrorInfo, FinishReason, ResponseDelta, UsageInfo, hookimpl
from crosswalk.plugins import MappingState, ProviderInfo, Recognition
from crosswalk_kelp.answers import event_deltas, looks_like_ours
from crosswalk_kelp.consumed import rest_of
from crosswalk_kelp.errors import error_of
from crosswalk_kelp.finish import finish_reason
from crosswalk_kelp.usage import usage_info

__all__ = ["KelpPlugin", "plugin"]


class KelpPlugin:
    """The hooks for Kelp."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Say who it is, and which HTTP paths it answers on."""
        return ProviderInfo(title="Kelp", endpoints=("/v2/dive",))

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """Say whether *event*, of unknown origin, is ours."""
        return Recognition.CERTAIN if looks_like_ours(event) else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say which deltas *event*, a piece of a stream or a whole body, stands for."""
        return event_deltas(event, state)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        """Say what the word means that ended the answer."""
        return finish_reason(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Read the counts of *event*."""
        return usage_info(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Keep what no typed field has taken."""
        return rest_of(event, state)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """Say what an HTTP error means."""
        return error_of(body, status)


plugin = KelpPlugin()

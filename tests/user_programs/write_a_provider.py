"""A provider in one file: hooks, registered and used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import normalize, registry
from crosswalk.plugins import (
    FinishReason,
    MappingState,
    ProviderInfo,
    ResponseDelta,
    UnknownEventError,
    UsageInfo,
    accept_count,
    hookimpl,
    require_object,
    take_string,
)


class Parrot:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Parrot")

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        said = require_object(event)
        match take_string(said, "type"):
            case "say":
                if text := take_string(said, "text"):
                    yield ResponseDelta(content_delta=text)
            case "bye":
                yield ResponseDelta(raw_finish_reason=take_string(said, "why") or "")
            case other:
                raise UnknownEventError("neither say nor bye", event_type=other)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        return {"tired": FinishReason.STOP}[reason]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return state.usage_info(None, accept_count(event, "n"))


parrot = Parrot()
registry.register(parrot, "parrot")
print(normalize(b'{"type": "bye", "why": "tired"}', "parrot").text, registry.mapper("parrot").info.title)
for provider in registry.providers():
    print(provider.name, provider.distribution, provider.version)
registry.unregister(parrot, "parrot")

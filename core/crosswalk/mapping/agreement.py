"""What a payload that fits several providers says, where all of them read it alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crosswalk.codec.writing import to_json
from crosswalk.errors import CrosswalkError
from crosswalk.mapping.detect import ask
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import Registry
from crosswalk.types._value import altered
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import ChatResponse

__all__ = ["agreed", "as_guessed"]


def agreed(
    candidates: Iterable[str],
    registry: Registry,
    events: Iterable[object],
    read: Callable[[Mapper], ChatResponse],
) -> ChatResponse | None:
    """The response that all *candidates* give, but for their own id; ``None`` where they give different ones.

    It has the id of the first by name whose dialect the others took over (``ProviderInfo.is_original``), else of the first
    by name; ``provenance`` says that the id was worked out.

    Args:
        candidates: the ids of providers that recognize the payload equally well.
        registry: where to look them up.
        events: the first events of the payload, decoded.
        read: gives the response for a provider; the id and the time of what has none must be the same each time.
    """
    # An override changes how its own answers are read, not whether the shipped providers agree.
    mappers = {
        name: registry.shipped(name) if registry.is_shipped(name) else registry.mapper(name)
        for name in sorted(candidates)
    }
    looked_at = list(events)
    name = next((name for name, one in mappers.items() if _is_original(one, looked_at)), min(mappers))
    try:
        found = read(mappers.pop(name))
        content = _content(found)
        is_same = all(_content(read(mapper)) == content for mapper in mappers.values())
        if is_same and registry.is_changed(name):
            found = read(registry.mapper(name))
    except CrosswalkError:
        return None
    return as_guessed(found) if is_same else None


def as_guessed(response: ChatResponse) -> ChatResponse:
    """*response* with the word that its provider was worked out: others answer like that, too."""
    provenance = {**response.metadata.provenance, "metadata.provider_id": Provenance.DERIVED}
    return altered(response, metadata=altered(response.metadata, provenance=provenance))


def _content(response: ChatResponse) -> bytes:
    """The canonical JSON of *response* without its provider."""
    return to_json(altered(response, metadata=altered(response.metadata, provider_id="-")))


def _is_original(mapper: Mapper, events: Iterable[object]) -> bool:
    """Whether *events* are in the provider's own dialect, which others took over."""
    return mapper.info.is_original and any(ask(mapper.recognizes, event) for event in events)

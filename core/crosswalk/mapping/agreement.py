"""The response to a payload that fits several providers, if all of them read the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crosswalk.codec.canonical import to_json
from crosswalk.errors import CrosswalkError, IncompleteStreamError
from crosswalk.mapping.detect import ask
from crosswalk.plugin.registry import Mapper, Registry
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import altered


def agreed(
    candidates: Iterable[str],
    registry: Registry,
    events: Iterable[object],
    read: Callable[[Mapper], ChatResponse],
    *,
    is_error: bool = False,
) -> ChatResponse | None:
    """Return the response that all *candidates* read, apart from their id, or ``None`` if they read different ones.

    If all of them read the same part of an answer that is cut, that failure is raised.

    It has the id of the original dialect (``ProviderInfo.is_original``), or of the first candidate by name.
    ``provenance`` marks the id as derived.

    Args:
        candidates: the ids of providers that recognize the payload equally well.
        registry: the registry of the providers.
        events: the first events of the payload, decoded.
        read: returns the response for a provider. A generated id and time must be the same each time.
        is_error: whether the status is that of an error, which each candidate reads with its own hook.

    Raises:
        IncompleteStreamError: that failure. ``partial`` has the part.
    """
    # An override changes how its own answers are read, not whether the shipped providers agree.
    mappers = {
        name: registry.shipped(name) if registry.is_shipped(name) else registry.mapper(name)
        for name in sorted(candidates)
    }
    looked_at = list(events)
    name = next((name for name, one in mappers.items() if _is_original(one, looked_at)), min(mappers))

    def reader(name: str) -> object:
        return name if is_error or not registry.is_shipped(name) else _hooks(mappers[name], looked_at)

    # One of the candidates that are bound to read the same reads for all.
    others = {reader(other): mapper for other, mapper in mappers.items()}
    del others[reader(name)]
    try:
        result, failure = _outcome(read, mappers[name])
        content = _content(result), type(failure)
        for mapper in others.values():
            response, error = _outcome(read, mapper)
            if (_content(response), type(error)) != content:
                return None
        if registry.is_changed(name):
            result, failure = _outcome(read, registry.mapper(name))
    except CrosswalkError:
        return None
    if failure is not None:
        failure.partial = as_guessed(result)
        raise failure
    return as_guessed(result)


def _outcome(
    read: Callable[[Mapper], ChatResponse], mapper: Mapper
) -> tuple[ChatResponse, IncompleteStreamError | None]:
    """Return what *mapper* reads, or the part of a cut answer with the failure."""
    try:
        return read(mapper), None
    except IncompleteStreamError as error:
        failure = error
    assert failure.partial is not None, "the reader says what came"
    return failure.partial, failure


def _hooks(mapper: Mapper, events: Iterable[object]) -> tuple[object, ...]:
    """Return all that decides how *mapper* reads *events*: the hooks of the dialect that they are in, and the framing."""
    dialect = next(filter(None, map(mapper.dialect_of, events)), mapper)
    hooks = dialect.map_delta, dialect.map_usage, dialect.map_finish_reason, dialect.extensions
    return *hooks, mapper.info.framing, mapper.info.text_events


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

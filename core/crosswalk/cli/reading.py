"""One recorded answer, mapped as a command line says."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from crosswalk.cli.sources import Answer
from crosswalk.config import Settings
from crosswalk.errors import DetectionError
from crosswalk.mapping.detect import detect
from crosswalk.mapping.normalize import DeltaStream, decode_events, normalize, normalize_stream
from crosswalk.mapping.reader import drain
from crosswalk.plugin.registry import registry
from crosswalk.types.response import ChatResponse, now
from crosswalk.wire.limits import DEFAULT

if TYPE_CHECKING:
    import hashlib

__all__ = ["deltas_of", "provider_of", "response_of"]


def deltas_of(answer: Answer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> DeltaStream:
    """The deltas of *answer*; an id that the provider did not send is made from the bytes.

    Args:
        answer: what to map.
        arguments: ``provider``, ``status`` and ``unknown`` as they were said, ``settings``, and perhaps
            ``created``.
        keep_raw: whether the response is to keep the provider's own events.

    Raises:
        DetectionError: nobody named the provider, and it cannot be found out.
        PluginError: the provider cannot be used.
    """
    chunks = answer.chunks
    if (arguments.provider or answer.provider) is None:
        chunks = [
            b"".join(chunks)
        ]  # to tell may take all of it: only with --provider is a live stream mapped as it comes
    provider = _provider(answer, arguments, chunks)
    if isinstance(chunks, list):  # all there: most providers send an id, and none need be made
        there = chunks
        options = _options(answer, arguments, lambda: _id(_digest(*there)))
    else:
        digest = _digest()
        chunks, options = _digested(chunks, digest), _options(answer, arguments, lambda: _id(digest))
    return normalize_stream(chunks, provider, keep_raw=keep_raw, **options)


def response_of(answer: Answer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> ChatResponse:
    """The response of *answer*, with the arguments of :func:`deltas_of`; a record of a log is read at once."""
    if answer.record is None:
        deltas = deltas_of(answer, arguments, keep_raw=keep_raw)
        drain(deltas)
        return deltas.response
    body = b"".join(answer.chunks)
    options = _options(answer, arguments, lambda: _id(_digest(body)))
    return normalize(body, _provider(answer, arguments, [body]), keep_raw=keep_raw, **options)


def _provider(answer: Answer, arguments: argparse.Namespace, chunks: Iterable[bytes]) -> str:
    known: str | None = arguments.provider or answer.provider
    return known or provider_of(b"".join(chunks), arguments.settings, answer.server)


def _options(answer: Answer, arguments: argparse.Namespace, make_id: Callable[[], str]) -> dict[str, Any]:
    created = getattr(arguments, "created", None)
    return {
        "status": arguments.status or answer.status or 200,
        "unknown": arguments.unknown,
        "id_factory": lambda: answer.id or make_id(),
        "clock": lambda: created or now(),
    }


def _digest(*chunks: bytes) -> hashlib._Hash:
    import hashlib  # it loads OpenSSL, which takes as long as to read an answer

    return hashlib.sha1(b"".join(chunks), usedforsecurity=False)


def _id(digest: hashlib._Hash) -> str:
    return str(UUID(bytes=digest.digest()[:16], version=5))


def _digested(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def provider_of(body: bytes, settings: Settings, server: str | None) -> str:
    """The provider that recognizes *body*; where several do, the *server* that its recorder names, else the default one.

    Raises:
        DetectionError: nobody recognizes it, or several do.
    """
    if not body.strip():
        raise DetectionError("it is empty")
    try:
        return detect(decode_events(body, DEFAULT), registry)
    except DetectionError as error:
        for preferred in (server, settings.default_provider):
            if preferred is not None and preferred in error.candidates:
                return preferred
        if next(decode_events(body, DEFAULT), None) is None:
            raise DetectionError("no JSON can be read from its beginning; --provider NAME says why") from None
        who = "several providers recognize" if error.candidates else "no provider recognizes"
        names = ", ".join(error.candidates or registry.names())
        raise DetectionError(f"{who} it; say --provider: {names}", candidates=error.candidates) from None

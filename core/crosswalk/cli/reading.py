"""One recorded answer, mapped as a command line says."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterable, Iterator
from uuid import UUID

from crosswalk.cli.sources import Answer
from crosswalk.config import Settings
from crosswalk.errors import DetectionError
from crosswalk.mapping.detect import detect
from crosswalk.mapping.normalize import DeltaStream, decode_events, normalize_stream
from crosswalk.plugin.registry import registry
from crosswalk.types.response import now
from crosswalk.wire.limits import DEFAULT

__all__ = ["deltas_of", "provider_of"]


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
    chunks, provider = answer.chunks, arguments.provider or answer.provider
    if provider is None:
        # It may take the whole answer to tell: only with --provider is a live stream mapped as it comes.
        body = b"".join(chunks)
        chunks, provider = [body], provider_of(body, arguments.settings, answer.server)
    digest = hashlib.sha1(usedforsecurity=False)
    created = getattr(arguments, "created", None)
    return normalize_stream(
        _digested(chunks, digest),
        provider,
        status=arguments.status or answer.status or 200,
        unknown=arguments.unknown,
        id_factory=lambda: answer.id or str(UUID(bytes=digest.digest()[:16], version=5)),
        clock=lambda: created or now(),
        keep_raw=keep_raw,
    )


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

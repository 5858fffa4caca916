"""Maps one recorded answer with the options of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from crosswalk.cli.logs.sources import Answer
from crosswalk.errors import CrosswalkError, DetectionError
from crosswalk.mapping.detect import LOOKED_AT, decode_events, detect, envelope_of, fault_of, nameable
from crosswalk.mapping.normalize import DeltaStream, guessed, normalize, normalize_stream
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import registry
from crosswalk.types.response import ChatResponse, now
from crosswalk.wire.framing import DEFAULT

if TYPE_CHECKING:
    import hashlib


class Provider:
    """The provider of an answer.

    Attributes:
        name: the provider id.
        is_guess: whether the answer fits other providers too, and nothing names this one.
    """

    __slots__ = ("is_guess", "name")

    def __init__(self, name: str, *, is_guess: bool = False) -> None:
        self.name = name
        self.is_guess = is_guess

    def marked(self, response: ChatResponse) -> ChatResponse:
        """*response*, marked as derived if its provider is a guess."""
        if not self.is_guess:
            return response
        from crosswalk.mapping.agreement import as_guessed  # it writes JSON, which --stream does not need

        return as_guessed(response)


def deltas_of(answer: Answer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> DeltaStream:
    """The deltas of *answer*. If the provider sent no id, one is made from the bytes.

    Args:
        answer: the answer to map.
        arguments: ``provider``, ``status`` and ``unknown`` of the command line, ``settings``, perhaps ``created``.
        keep_raw: whether the response keeps the provider's own events.

    Raises:
        RecordError: the log states the exchange without storing its answer.
        DetectionError: no provider is named, and it cannot be detected.
        PluginError: the provider cannot be used.
    """
    if answer.record is not None and not answer.record.has_answer:
        from crosswalk.records import RecordError

        raise RecordError("the log does not store the answer", answer.record)
    return _deltas(answer, arguments, keep_raw)[0]


def _deltas(answer: Answer, arguments: argparse.Namespace, keep_raw: bool) -> tuple[DeltaStream, Provider]:
    chunks = answer.chunks
    if (arguments.provider or answer.provider) is None:
        # Detection may need the whole answer. A live stream is mapped as it arrives only with --provider.
        chunks = [b"".join(chunks)]
    provider = _provider(answer, arguments, chunks)
    if isinstance(chunks, list):  # the whole answer: most providers send an id, and none has to be made
        there = chunks
        options = _options(answer, arguments, lambda: _id(_digest(*there)))
    else:
        digest = _digest()
        chunks, options = _digested(chunks, digest), _options(answer, arguments, lambda: _id(digest))
    return normalize_stream(chunks, provider.name, keep_raw=keep_raw, **options), provider


def response_of(answer: Answer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> ChatResponse:
    """The response of *answer*, with the arguments of :func:`deltas_of`. A record of a log is read in one piece.

    A record without an answer gives a response with the facts that its log states.
    """
    if answer.record is None:
        deltas, provider = _deltas(answer, arguments, keep_raw)
        response = deltas.until_done()
    elif not answer.record.has_answer:
        from crosswalk.records import stated_response

        return stated_response(answer.record, clock=_clock(arguments))
    else:
        body = b"".join(answer.chunks)
        if arguments.provider is None and (stored := _stored(body)) is not None:
            return stored
        provider = _provider(answer, arguments, [body])
        options = _options(answer, arguments, lambda: _id(_digest(body)))
        from crosswalk.records import with_facts

        response = with_facts(normalize(body, provider.name, keep_raw=keep_raw, **options), answer.record)
    return provider.marked(response)


def _stored(body: bytes) -> ChatResponse | None:
    """The response in *body* if it is canonical JSON, as ``crosswalk normalize`` writes it, or ``None``.

    Raises:
        CanonicalJSONError: it is malformed.
    """
    if b'"format_version"' not in body:
        return None
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict) or not fields.keys() >= {"format_version", "metadata", "finish_reason"}:
        return None
    from crosswalk.codec import from_json  # no answer of a provider needs it

    return from_json(body, ChatResponse)


def _provider(answer: Answer, arguments: argparse.Namespace, chunks: Iterable[bytes]) -> Provider:
    known: str | None = arguments.provider or answer.provider
    if known is not None:
        return Provider(known, is_guess=answer.is_guess and arguments.provider is None)
    body, status = b"".join(chunks), arguments.status or answer.status or 200
    try:
        prefer = arguments.settings.default_provider
        return provider_of(body, prefer, answer.server, status=status)
    except DetectionError as error:
        if error.candidates or answer.record is None or answer.record.layout is not None:
            raise
        hint = "--layout or --field response=PATH says where in the line the answer stands"
        raise DetectionError(f"{error}; {hint}") from None


def _options(answer: Answer, arguments: argparse.Namespace, make_id: Callable[[], str]) -> dict[str, Any]:
    return {
        "status": arguments.status or answer.status or 200,
        "unknown": arguments.unknown,
        "id_factory": lambda: answer.id or make_id(),
        "clock": _clock(arguments),
    }


def _clock(arguments: argparse.Namespace) -> Callable[[], datetime]:
    created = getattr(arguments, "created", None)
    return lambda: created or now()


def _digest(*chunks: bytes) -> hashlib._Hash:
    # hashlib loads OpenSSL, which takes as long as to read an answer: as the standard library's own ``random``, take the
    # lean module behind it.
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]
    except ImportError:  # a Python without it
        from hashlib import sha1

    result: hashlib._Hash = sha1(b"".join(chunks), usedforsecurity=False)
    return result


def _id(digest: hashlib._Hash) -> str:
    from uuid import UUID  # needed only if the provider sent no id

    return str(UUID(bytes=digest.digest()[:16], version=5))


def _digested(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def provider_of(body: bytes, prefer: str | None, server: str | None, *, status: int = 200) -> Provider:
    """The provider that recognizes *body*, or a guess. The lines before it in a log never count.

    If several providers recognize it, the order is: the *server* that its recorder names, the provider to *prefer*, and, if
    all of them read it alike, the one whose dialect it is (``openai``).

    Args:
        body: an answer.
        prefer: the user's default provider, or ``None`` for none.
        server: the server's name in the recording, or ``None`` if unknown.
        status: the HTTP status.

    Raises:
        DetectionError: no provider recognizes it, or several do and read it differently.
    """
    if not body.strip():
        raise DetectionError("it is empty")
    events = list(islice(decode_events(body, DEFAULT), LOOKED_AT))
    try:
        return Provider(detect(events, registry))
    except DetectionError as error:
        ambiguous = error
    candidates = ambiguous.candidates
    for preferred in (server, prefer):
        if preferred in candidates:
            return Provider(preferred)
    if candidates:
        with suppress(CrosswalkError):
            options = ReaderOptions(status=status, keep_raw=False)
            response = guessed(ambiguous, body, options, registry)
            return Provider(response.metadata.provider_id, is_guess=True)
        names = ", ".join(candidates)
        raise DetectionError(
            f"several providers recognize it; say --provider: {names}", candidates=candidates
        )
    if not events:
        from crosswalk.wire.events import looks_like  # reading JSON does not need it

        likeness = looks_like(body)
        why = (
            f"it looks like {likeness}" if likeness else fault_of(body, DEFAULT) or "there is no event in it"
        )
        raise DetectionError(f"no JSON can be read from its beginning; {why}")
    if (key := envelope_of(events)) is not None:
        raise DetectionError(f"there is an answer under {key!r}, in the envelope of a log")
    raise DetectionError(
        f"no provider recognizes it; say --provider: {nameable(ambiguous.known, ambiguous.broken)}"
    )

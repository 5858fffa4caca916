"""Seals: opaque values that a client gets with an answer of another format, and that restore the provider's original.

A client's format has a field for opaque values: ``encrypted_content`` of a Responses reasoning item, the ``signature`` of a
``thinking`` block, the data of ``reasoning_details`` of Chat Completions, Gemini's ``thoughtSignature``. The gateway puts
the whole answer there, with its provider. The client brings it back with the conversation. The seal is authenticated and
bound to the client's key, so the gateway needs no memory, and a client cannot use the seal of another one. If the
configuration holds no key at all, the secret is known, and a seal only detects accidental changes.

Ollama's format has no such field: its client keeps the role, the text, ``thinking``, the images and the calls of a message.
"""

from __future__ import annotations

import hmac
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

import attrs

from crosswalk import (
    CanonicalJSONError,
    ChatResponse,
    Segment,
    SegmentType,
    ToolCallArgumentsError,
    UsageInfo,
    from_json,
    to_json,
)
from crosswalk.convert import WireForm
from crosswalk.service import Dropped, Turn
from crosswalk_serve.config import Config
from crosswalk_serve.keys import Caller
from crosswalk_serve.requests import Incoming

FORMAT: Final = "crosswalk"
"""The format name of a seal in ``reasoning_details``."""
_PREFIX: Final = "crosswalk001"
"""The beginning of a seal. A seal is base64, because the SDKs of Gemini decode a signature and encode it again."""
_URL_SAFE: Final = str.maketrans("-_", "+/")
_TYPED: Final = {"type": "reasoning.encrypted", "format": FORMAT}
_FIELDS: Final[Mapping[WireForm, tuple[str, Mapping[str, str]]]] = {
    WireForm.OPENAI_CHAT: ("encrypted", _TYPED),
    WireForm.OPENAI_RESPONSES: ("encrypted", {}),
    WireForm.ANTHROPIC: ("signature", {}),
    WireForm.GEMINI: ("encrypted", _TYPED),
}
"""The metadata that each format writes into its field for opaque values: the key of the seal, and facts about it."""
_LARGEST: Final = 1 << 24
_FOREIGN: Final = "reasoning: its seal is not of this gateway and key"
_CHANGED: Final = "reasoning: the client has changed the answer that it belongs to"


class Seals:
    """Seals the answers of one gateway for one client.

    Args:
        config: the gateway's configuration, whose secrets authenticate the seals.
        caller: the client.
    """

    def __init__(self, config: Config, caller: Caller) -> None:
        self._config, self._caller = config, caller

    @cached_property
    def _key(self) -> bytes:
        """The secret of the seals. Most requests need none."""
        caller = self._caller
        own = b"" if caller.key is None else str(caller.key.hash).encode()
        return sha256(_secret(self._config) + own).digest()

    def of(self, response: ChatResponse, form: WireForm) -> Segment | None:
        """Return the part with the seal of *response* for a client of *form*, or ``None`` if it holds nothing opaque."""
        is_plain = all(
            one.type in (SegmentType.TEXT, SegmentType.TOOL_CALL) and not one.metadata.keys() - {"id", "name"}
            for one in response.segments
        )
        if form not in _FIELDS or is_plain or response.error_info is not None:
            return None
        stored = attrs.evolve(
            response,
            attempts=(),
            alternatives=(),
            logprobs=None,
            usage=UsageInfo.EMPTY,
        )
        data = zlib.compress(to_json(stored))
        key, about = _FIELDS[form]
        seal = _PREFIX + b64encode(self._mac(data) + data).decode()
        return Segment(SegmentType.REASONING, "", {**about, key: seal})

    def opened(self, incoming: Incoming) -> Incoming:
        """Return *incoming* with the answers of its seals in place. Whatever a seal does not prove is left out."""
        request = incoming.request
        turns: list[Turn] = []
        notes: list[Dropped] = []
        known: set[str] = set()
        for turn in request.messages:
            seal = _seal_in(turn)
            if seal is None or not isinstance(turn, ChatResponse):
                turns.append(turn)
                continue
            sealed = self._read(seal)
            same = None if sealed is None else _as_client_has_it(sealed, turn)
            if same is None:
                segments = [
                    one for one in (_without(seal, each) for each in turn.segments) if one is not None
                ]
                turns.append(attrs.evolve(turn, segments=segments))
                notes.append(Dropped(turn.id, _FOREIGN if sealed is None else _CHANGED, refuses=False))
            else:
                turns.append(same)
                known.add(same.id)
        if not (known or notes):
            return incoming
        changed = attrs.evolve(request, messages=turns, notes=tuple(notes), known=frozenset(known))
        return attrs.evolve(incoming, request=changed)

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, sha256)

    def _read(self, seal: str) -> ChatResponse | None:
        """Return the answer in *seal*, or ``None`` if the seal is not from this gateway for this client."""
        try:
            raw = b64decode(seal.removeprefix(_PREFIX).translate(_URL_SAFE))
        except ValueError:
            return None
        mac, data = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, self._mac(data)):
            return None
        try:
            return from_json(zlib.decompressobj().decompress(data, _LARGEST), ChatResponse)
        except (CanonicalJSONError, zlib.error):
            return None


def _secret(config: Config) -> bytes:
    """Return the secret of the gateway: the credentials in its configuration, which all its processes have."""
    targets = [target for model in config.models.values() for target in model.endpoints]
    known = [target.api_key.reveal() for target in targets if target.api_key is not None]
    known += [str(key.hash) for key in config.keys.values()]
    return sha256("\n".join(known).encode()).digest()


def _seal_in(turn: Turn) -> str | None:
    for segment in turn.segments if isinstance(turn, ChatResponse) else ():
        for key in ("encrypted", "signature"):
            value = segment.metadata.get(key)
            if isinstance(value, str) and value.startswith(_PREFIX):
                return value
    return None


def _without(seal: str, segment: Segment) -> Segment | None:
    """Return *segment* without *seal*, or ``None`` for reasoning, which only the seal can prove."""
    if seal not in segment.metadata.values():
        return segment
    if segment.type is SegmentType.REASONING:
        return None
    metadata = {key: value for key, value in segment.metadata.items() if value != seal}
    return attrs.evolve(segment, metadata=metadata)


def _as_client_has_it(sealed: ChatResponse, turn: ChatResponse) -> ChatResponse | None:
    """Return the *sealed* answer with the client's ids, or ``None`` if the client's *turn* differs from it."""
    calls, others = sealed.tool_calls, turn.tool_calls
    if sealed.text != turn.text or [call.name for call in calls] != [call.name for call in others]:
        return None
    if any(_arguments(one) != _arguments(other) for one, other in zip(calls, others, strict=True)):
        return None
    ids = {one.id: other.id for one, other in zip(calls, others, strict=True)}
    message = attrs.evolve(
        sealed.message, tool_calls=[attrs.evolve(call, id=ids[call.id]) for call in calls] or None
    )
    segments = [
        attrs.evolve(one, metadata={**one.metadata, "id": ids[str(one.metadata["id"])]})
        if one.type is SegmentType.TOOL_CALL and "type" not in one.metadata and one.metadata.get("id") in ids
        else one
        for one in sealed.segments
    ]
    return attrs.evolve(sealed, id=turn.id, message=message, segments=segments)


def _arguments(call: Any) -> Any:
    try:
        return call.parsed()
    except ToolCallArgumentsError:
        return call.arguments

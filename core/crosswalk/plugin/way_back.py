"""Facts about the way back: the parts of an earlier answer that a provider takes in the next request."""

from __future__ import annotations

import re
from typing import Final

import attrs


@attrs.frozen
class ServerTool:
    """A tool that an API runs itself, as a call and its result. Neither is accepted without the other.

    Attributes:
        call: the ``type`` of the call's segment. ``*`` at its beginning matches anything.
        result: the ``type`` of the result's segment, in the same form. A type that fits both is a call's.
        id: the key that names the call in the result's segment.
    """

    call: str
    result: str
    id: str = "id"

    def is_call(self, kind: object) -> bool:
        """Whether a segment of the type *kind* is a call of the tool."""
        return _fits(kind, self.call)

    def is_result(self, kind: object) -> bool:
        """Whether a segment of the type *kind* is a result of the tool."""
        return _fits(kind, self.result) and not self.is_call(kind)


def _fits(kind: object, pattern: str) -> bool:
    if not isinstance(kind, str):
        return False
    return kind.endswith(pattern[1:]) if pattern.startswith("*") else kind == pattern


@attrs.frozen(kw_only=True)
class WayBack:
    """The parts of earlier turns that a provider takes. Its own reasoning and state always go back.

    Attributes:
        takes_reasoning: whether it takes the reasoning text of any model, as long as the text has no signature.
        needs_signature: whether its own host refuses reasoning without a signature. Other servers of its dialect do not.
        takes_custom_calls: whether a call may hold free text. If not, it goes as a function with one string ``input``.
        takes_citations: whether it takes its own citations back.
        takes_media: the media that an assistant's message may hold: ``image``, ``audio``, ``video``, or ``audio_id`` for a
            sound by its id.
        shows_pictures: whether a user's message may hold a picture.
        moves_system: whether system messages are allowed only at the beginning.
        names_speakers: whether a message may name its speaker.
        knows_failures: whether a tool's result may say that the tool failed.
        server_tools: the tools that it runs itself, if they have two parts.
        refuses: fields of an answer's message that it does not take back.
    """

    takes_reasoning: bool = False
    needs_signature: bool = False
    takes_custom_calls: bool = False
    takes_citations: bool = False
    takes_media: tuple[str, ...] = ()
    shows_pictures: bool = False
    moves_system: bool = False
    names_speakers: bool = False
    knows_failures: bool = False
    server_tools: tuple[ServerTool, ...] = ()
    refuses: tuple[str, ...] = ()


_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LONGEST = 24
_ANY = int.from_bytes(b"letters of both cases, and digits", "big")
"""The length of a new id if the server takes longer ones: 142 bits."""


@attrs.frozen(kw_only=True)
class CallIds:
    """The ids of tool calls that a server takes. The service translates ids of other servers that it would refuse.

    Attributes:
        pattern: the regular expression that a whole id matches. Letters and digits have to match it.
        maximum: the largest number of characters.

    Raises:
        ValueError: ids of letters and digits do not match.
    """

    pattern: str = ".+"
    maximum: int = 64

    def __attrs_post_init__(self) -> None:
        if not self.fits(self._spelt(_ANY)):
            raise ValueError("the pattern of ids must allow letters and digits, as many as the maximum says")

    def fits(self, id: str) -> bool:
        """Whether the server takes *id*."""
        return len(id) <= self.maximum and re.fullmatch(self.pattern, id, re.ASCII) is not None

    def make(self, seed: str) -> str:
        """Return an id that fits, always the same one for the same *seed*."""
        from hashlib import sha256  # only to ask a server

        return self._spelt(int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest(), "big"))

    def _spelt(self, number: int) -> str:
        letters = []
        for _ in range(min(self.maximum, _LONGEST)):
            number, location = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[location])
        return "".join(letters)

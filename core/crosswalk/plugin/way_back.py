"""Facts about the way back: which parts of an earlier answer a provider takes in the next request."""

from __future__ import annotations

import attrs

__all__ = ["ServerTool", "WayBack"]


@attrs.frozen
class ServerTool:
    """How an API writes a tool that it runs itself: a call, and its result. Neither is accepted without the other.

    Attributes:
        call: the ``type`` of the call's segment; ``*`` at its beginning stands for anything.
        result: that of the result's segment, likewise. A type that fits both is a call's.
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
    """What a provider takes of earlier turns. Its own reasoning and its own state always go back, whatever this says.

    Attributes:
        takes_reasoning: whether it takes the reasoning text of any model, as long as the text has no signature.
        needs_signature: whether its own host refuses reasoning without a signature. Other servers of its dialect do not.
        takes_custom_calls: whether a call may hold free text; otherwise it goes as a function with one string ``input``.
        takes_citations: whether it takes its own citations back.
        takes_media: the media that an assistant's message may hold: ``image``, ``audio``, ``video``, or ``audio_id`` for a
            sound by its id.
        shows_pictures: whether a user's message may hold a picture.
        moves_system: whether system messages stand at the beginning alone.
        names_speakers: whether a message may name its speaker.
        knows_failures: whether a tool's result may say that the tool failed.
        server_tools: the tools that it runs itself, where they take two parts.
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

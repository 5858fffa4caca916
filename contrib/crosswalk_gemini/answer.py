"""What is remembered of one candidate while its chunks come in."""

from __future__ import annotations

import attrs

from crosswalk.plugins import CitationRef, SafetyAnnotation, Segment
from crosswalk_gemini.arguments import ArgumentsWriter

__all__ = ["Answer", "Answers", "Citation"]


@attrs.frozen
class Citation:
    """A source and the words that rest on it.

    Attributes:
        source: the source, without a span.
        start: the first byte of the words in the text.
        end: the byte after them; ``None`` when the provider does not say.
        words: the words themselves; ``None`` when the provider does not say.
        about: more about the source, for the segment's metadata.
    """

    source: CitationRef
    start: int = 0
    end: int | None = None
    words: str | None = None
    about: dict[str, str] = attrs.Factory(dict)


@attrs.define
class Answer:
    """One candidate so far.

    Attributes:
        choice: its number.
        said: the pieces of its text, thoughts left out.
        produced: whether it has text, a call of a client's tool, or media.
        writer: writes the arguments of the call that is being streamed; ``None`` when none is.
        word: its first finish word, which old servers send with every chunk; ``None`` before.
        citations: which of its words are cited, one after the other.
        grounding: the same by its search; the last report is the whole of it.
        ratings: the last verdicts that are not harmless.
        shown: the segments that these gave, so that what the provider repeats comes once.
    """

    choice: int
    said: list[str] = attrs.Factory(list)
    produced: bool = False
    writer: ArgumentsWriter | None = None
    word: str | None = None
    citations: list[Citation] = attrs.Factory(list)
    grounding: list[Citation] = attrs.Factory(list)
    ratings: tuple[SafetyAnnotation, ...] = ()
    shown: set[Segment] = attrs.Factory(set)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.said)


class Answers(dict[int, Answer]):
    """The candidates of one response by their number; each is made when it is first asked for."""

    def __missing__(self, choice: int) -> Answer:
        answer = self[choice] = Answer(choice)
        return answer

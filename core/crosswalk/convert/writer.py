"""What the writers of all forms have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from crosswalk.convert.errors import ConversionError
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.errors import ErrorInfo
from crosswalk.mapping.logprobs import logprob_of
from crosswalk.plugin.mapper import Mapper
from crosswalk.types.finish import PAUSES, FinishReason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, dump_json
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.merge import PIECES, Arrays, merge
from crosswalk.types.segment import CitationRef
from crosswalk.types.usage import UsageInfo

__all__ = [
    "TIERS",
    "Event",
    "Heading",
    "Writer",
    "first_words",
    "json_of",
    "logprobs_of",
    "named_frame",
    "unnamed_frame",
    "url_citation",
]

Event: TypeAlias = dict[str, Any]
"""An event of a stream, or something in one."""

TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")
"""The service tiers that clients of OpenAI's forms know."""


@attrs.frozen
class Heading:
    """What a form says of an answer before its content.

    Attributes:
        id: its id.
        model: the model; ``""`` when unknown.
        created: when it was created.
        extensions: the provider's further fields, as far as they are known; a form takes what is its own.
        own: who read it, where it was read from the form that is written; ``None`` where it was not.
        request: the client's request in the form that is written, as far as the answer repeats it.
    """

    id: str
    model: str
    created: datetime
    extensions: FrozenObject = EMPTY_OBJECT
    own: Mapper | None = None
    request: Mapping[str, Any] = attrs.Factory(dict)


class Writer(ABC):
    """Writes one answer in one form, as the events of a stream or as a whole.

    Tell it what is kept (:meth:`learn`), feed it with :meth:`piece`, :meth:`tokens`, :meth:`end` and :meth:`fail`, then
    :meth:`close` it, and take the events that it makes. A writer of the *whole* answer has it as :meth:`body` after that.

    Args:
        heading: tells what is said first; asked once, as late as can be, for some providers say it late.
        whole: whether only the body is asked for: then no event is of use, and a part may wait for what comes after it.

    Attributes:
        form: the form.
        usage: the tokens so far; set by whoever feeds it.
        duration: how long the request took, set likewise before the end; ``None`` when unknown.
    """

    form: ClassVar[WireForm]

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        self._ask = heading
        self._heading: Heading | None = None
        self._left: dict[str, Any] | None = None
        self._arrays = Arrays()
        self.whole = whole
        self.usage: UsageInfo | None = None
        self.duration: timedelta | None = None
        self.error: ErrorInfo | None = None

    @property
    def heading(self) -> Heading:
        """What is said first."""
        if self._heading is None:
            self._heading = self._ask()
        return self._heading

    @property
    def is_own(self) -> bool:
        """Whether the answer was read from this form, so that what is kept of it goes back where it stood."""
        return self.heading.own is not None

    @property
    def left(self) -> dict[str, Any]:
        """What is kept of the answer in its own form, as far as it has come; the writer's own."""
        if self._left is None:
            self._left = self.heading.extensions.thawed() if self.whole else {}
        return self._left

    def learn(self, left: FrozenObject) -> None:
        """Take more of what is kept of a streamed answer, as a delta brings it."""
        merge(self.left, left.thawed(), self._arrays, PIECES)

    @abstractmethod
    def piece(self, piece: Piece) -> Iterable[Event]:
        """Take a piece of a part; what the form cannot say is left out."""

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:  # noqa: B027  # not every form has them
        """Take log probabilities of the text that follows next."""

    @abstractmethod
    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """Take why an answer ended, with the provider's own word for it."""

    @abstractmethod
    def fail(self, info: ErrorInfo) -> Iterable[Event]:
        """Take the error that ended the answer."""

    @staticmethod
    @abstractmethod
    def error_event(info: ErrorInfo) -> Event:
        """The body of an HTTP error that says *info*."""

    @abstractmethod
    def close(self) -> Iterable[Event]:
        """End the answer."""

    def word_for(self, reason: FinishReason, raw: str | None, words: Mapping[str, FinishReason]) -> str:
        """The form's word for *reason*: the provider's own one where it is among the *words* and means the same.

        In its own form an answer keeps a word that nobody knows, and one that its calls, or that it has none, overrule.
        A pause has no word in another form: it is nearest to a limit, which says that the answer is not whole.
        """
        if raw in PAUSES and raw not in words and reason is FinishReason.STOP and not self.is_own:
            reason = FinishReason.LENGTH
        means = None if raw is None else words.get(raw, reason if self.is_own else None)
        overruled = {means, reason} == {FinishReason.STOP, FinishReason.TOOL_CALLS}
        if raw is not None and (means is reason or (overruled and self.is_own)):
            return raw
        first = first_words(words)
        return first[reason if reason in first else _NEAREST[reason]]

    def frame(self, event: Event) -> bytes:
        """*event* as it stands in a stream."""
        return named_frame(event)

    def spelled(self, event: Event) -> Event:
        """*event* in the words of the server that the answer came from; it may be changed."""
        return event

    def top_of(self, event: Event) -> Event:
        """Where *event* has the fields that are at the top of a body."""
        return event

    @property
    def is_error_body(self) -> bool:
        """Whether the body is that of an HTTP error."""
        return self.error is not None

    @abstractmethod
    def body(self) -> Event:
        """The answer as a whole, once it is closed."""


def named_frame(event: Event) -> bytes:
    """*event* with its type as its name, as Anthropic and the Responses API send it."""
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json_of(event))


def unnamed_frame(event: Event) -> bytes:
    """*event* as OpenAI sends chunks: without a name; an empty one is the mark of the end."""
    return b"data: %s\n\n" % (json_of(event) if event else b"[DONE]")


def json_of(value: Event) -> bytes:
    """*value* as JSON text.

    Raises:
        ConversionError: it holds what JSON cannot, such as half a surrogate pair.
    """
    try:
        return dump_json(value)
    except TypeError as error:
        cause = str(error)[:80]
    raise ConversionError(f"the answer holds what JSON cannot: {cause}")


_NEAREST: Final = {
    FinishReason.CANCELLED: FinishReason.LENGTH,  # it says that the answer is incomplete
    FinishReason.CONTENT_FILTER: FinishReason.LENGTH,  # likewise
    FinishReason.TOOL_CALLS: FinishReason.STOP,
    FinishReason.ERROR: FinishReason.STOP,  # of an alternative: the answer itself becomes an error
}
"""Which meaning stands for one that a form has no word for."""


def first_words(words: Mapping[str, Any]) -> dict[Any, str]:
    """Of a form's *words*, with what each means, the first for each meaning."""
    return {meaning: word for word, meaning in reversed([*words.items()])}


_ADDRESS: Final = ("http://", "https://")


def logprobs_of(tokens: tuple[TokenLogprob, ...], *, with_bytes: bool = False) -> list[Event]:
    """*tokens* in OpenAI's words; what has no probability is left out, for none may be made up.

    *with_bytes*, a token of which no bytes were sent has those of its text.
    """
    found = [logprob_of(token) for token in tokens if token.logprob is not None]
    for said in found:
        said["top_logprobs"] = [top for top in said["top_logprobs"] if top["logprob"] is not None]
        for entry in (said, *said["top_logprobs"]) if with_bytes else ():
            entry["bytes"] = entry["bytes"] or list(entry["token"].encode(errors="replace"))
    return found


def url_citation(piece: Piece, length: int) -> Event | None:
    """What *piece*, a citation, says of a page, in OpenAI's words; ``None`` when it cites something else.

    Args:
        piece: the citation.
        length: how long the text is so far: a citation without a span is of all of it.
    """
    ref = next((note for note in piece.annotations if isinstance(note, CitationRef)), None)
    if ref is None or ref.source is None or not ref.source.startswith(_ADDRESS):
        return None
    title = piece.metadata.get("title")
    start, end = ref.span or (0, length)
    about = {"start_index": start, "end_index": end}
    return {**about, "title": title if isinstance(title, str) else piece.text, "url": ref.source}

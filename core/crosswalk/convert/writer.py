"""What the writers of all forms have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar

import attrs

from crosswalk.convert.errors import ConversionError
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.errors import ErrorInfo
from crosswalk.plugin.mapper import Mapper
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, dump_json
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.merge import JOIN, Places, merge
from crosswalk.types.segment import CitationRef
from crosswalk.types.usage import UsageInfo

__all__ = ["Heading", "URLCitation", "Writer", "json_of", "named_frame", "url_citation", "word_for"]

E = TypeVar("E")


@attrs.frozen
class Heading:
    """What a form says of an answer before its content.

    Attributes:
        id: its id.
        model: the model; ``""`` when unknown.
        created: when it was created.
        extensions: the provider's further fields, as far as they are known; a form takes what is its own.
        own: who read it, where it was read from the form that is written; ``None`` where it was not.
    """

    id: str
    model: str
    created: datetime
    extensions: FrozenObject = EMPTY_OBJECT
    own: Mapper | None = None


class Writer(ABC, Generic[E]):
    """Writes one answer in one form, as a stream of events *E* and as a whole.

    Feed it with :meth:`piece`, :meth:`tokens`, :meth:`count`, :meth:`end` and :meth:`fail`, then :meth:`close` it; each
    gives the events that it makes. After that :meth:`body` is the same answer as a whole.

    Args:
        heading: tells what is said first; asked once, as late as can be, for some providers say it late.
        whole: whether only the body is asked for, so that a part may wait for what comes after it.

    Attributes:
        form: the form.
    """

    form: ClassVar[WireForm]

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        self._ask = heading
        self._heading: Heading | None = None
        self._left: dict[str, Any] | None = None
        self._places = Places()
        self.whole = whole
        self.usage: UsageInfo | None = None
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
        merge(self.left, left.thawed(), self._places, JOIN)

    @abstractmethod
    def piece(self, piece: Piece) -> Iterable[E]:
        """Take a piece of a part; what the form cannot say is left out."""

    @abstractmethod
    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> Iterable[E]:
        """Take log probabilities of the text that follows next."""

    def count(self, usage: UsageInfo) -> Iterable[E]:
        """Take the tokens so far; a later count replaces an earlier one."""
        self.usage = usage
        return ()

    @abstractmethod
    def end(self, reason: FinishReason, raw: str | None, choice: int) -> Iterable[E]:
        """Take why an answer ended, with the provider's own word for it."""

    @abstractmethod
    def fail(self, info: ErrorInfo) -> Iterable[E]:
        """Take the error that ended the answer."""

    @abstractmethod
    def close(self) -> Iterable[E]:
        """End the answer."""

    @abstractmethod
    def frame(self, event: E) -> bytes:
        """*event* as it stands in a stream."""

    def spelled(self, event: E) -> E:
        """*event* in the words of the server that the answer came from; it may be changed."""
        return event

    @property
    def is_error_body(self) -> bool:
        """Whether the body is that of an HTTP error."""
        return self.error is not None

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The answer as a whole, once it is closed."""


def named_frame(event: dict[str, Any]) -> bytes:
    """*event* with its type as its name, as Anthropic and the Responses API send it."""
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json_of(event))


def json_of(value: dict[str, Any]) -> bytes:
    """*value* as JSON text.

    Raises:
        ConversionError: it holds what JSON cannot, such as half a surrogate pair.
    """
    try:
        return dump_json(value)
    except TypeError as error:
        cause = str(error)[:80]
    raise ConversionError(f"the answer holds what JSON cannot: {cause}")


def word_for(
    reason: FinishReason,
    raw: str | None,
    words: Mapping[FinishReason, str],
    own: Mapping[str, FinishReason],
) -> str:
    """The form's word for *reason*: the provider's own one where the form knows it and means the same."""
    return raw if raw is not None and own.get(raw) is reason else words[reason]


@attrs.frozen
class URLCitation:
    """A citation of a page.

    Attributes:
        url: the page.
        title: its title, as far as it is known.
        start: the first character of the text that rests on it.
        end: the character behind the last one.
    """

    url: str
    title: str
    start: int
    end: int


_ADDRESS: Final = ("http://", "https://")


def url_citation(piece: Piece, length: int) -> URLCitation | None:
    """What *piece*, a citation, says of a page; ``None`` when it cites something else.

    Args:
        piece: the citation.
        length: how long the text is so far: a citation without a span is of all of it.
    """
    ref = next((note for note in piece.annotations if isinstance(note, CitationRef)), None)
    if ref is None or ref.source is None or not ref.source.startswith(_ADDRESS):
        return None
    title = piece.metadata.get("title")
    start, end = ref.span or (0, length)
    return URLCitation(ref.source, title if isinstance(title, str) else piece.text, start, end)

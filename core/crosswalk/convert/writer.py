"""The shared base of the writers of all forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from crosswalk.convert.errors import ConversionError
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.errors import ErrorInfo
from crosswalk.mapping.blocks import logprob_of
from crosswalk.plugin.registry import Mapper
from crosswalk.types.json import EMPTY_OBJECT, PIECES, Arrays, FrozenObject, dump_json, merge
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import PAUSES, CitationRef, FinishReason, TokenLogprob

Event: TypeAlias = dict[str, Any]
"""An event of a stream, or an object in one."""

TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")
"""The service tiers that clients of OpenAI's forms know."""


@attrs.frozen
class Heading:
    """The facts about an answer that a form writes before its content.

    Attributes:
        id: its id.
        model: the model, or ``""`` if unknown.
        created: the time of its creation.
        extensions: the provider's further fields, as far as they are known. A form takes only its own.
        own: the provider that read it, if it was read from the form that is written, or ``None``.
        request: the client's request in the form that is written, as far as the answer repeats it.
    """

    id: str
    model: str
    created: datetime
    extensions: FrozenObject = EMPTY_OBJECT
    own: Mapper | None = None
    request: Mapping[str, Any] = attrs.Factory(dict)

    @property
    def time(self) -> str:
        """The time of its creation, in UTC, as Gemini and Ollama write it."""
        return f"{self.created.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


class Writer(ABC):
    """Writes one answer in one form, as the events of a stream or as a whole.

    Pass it the stored fields (:meth:`learn`), feed it with :meth:`piece`, :meth:`tokens`, :meth:`end` and :meth:`fail`, then
    :meth:`close` it, and take the events that it makes. A writer of the *whole* answer has it as :meth:`body` after that.

    Args:
        heading: returns the heading. It is called once, as late as possible, because some providers send it late.
        whole: whether only the body is wanted. Then events are unused, and a part may wait for the next one.

    Attributes:
        form: the form.
        usage: the tokens so far, set by the caller.
        duration: the duration of the request, set by the caller before the end, or ``None`` if unknown.
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
        """The heading."""
        if self._heading is None:
            self._heading = self._ask()
        return self._heading

    @property
    def is_own(self) -> bool:
        """Whether the answer was read from this form, so that its stored fields go back to their positions."""
        return self.heading.own is not None

    @property
    def left(self) -> dict[str, Any]:
        """The stored fields of the answer in its own form so far. The writer's own copy."""
        if self._left is None:
            self._left = self.heading.extensions.thawed() if self.whole else {}
        return self._left

    def learn(self, left: FrozenObject) -> None:
        """Take more of the stored fields of a streamed answer, as a delta brings them."""
        merge(self.left, left.thawed(), self._arrays, PIECES)

    @abstractmethod
    def piece(self, piece: Piece) -> Iterable[Event]:
        """Write a piece of a part. Content that the form cannot express is left out."""

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:  # noqa: B027  # not every form has them
        """Write log probabilities of the text that follows next."""

    @abstractmethod
    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """Write the reason why an answer ended, with the provider's own word for it."""

    def fail(self, info: ErrorInfo) -> Iterable[Event]:
        """Write the error that ended the answer, as its last event."""
        yield from self._pending()
        self.error = info
        yield self.error_event(info)

    @staticmethod
    @abstractmethod
    def error_event(info: ErrorInfo) -> Event:
        """Return the body of an HTTP error with *info*."""

    def close(self) -> Iterable[Event]:
        """End the answer."""
        if self.error is None:
            yield from self._pending()
            if not self.whole:
                yield from self._last()

    @abstractmethod
    def _pending(self) -> Iterable[Event]:
        """Write the parts that have waited for later ones."""

    @abstractmethod
    def _last(self) -> Iterable[Event]:
        """Write the last events of a stream."""

    def word_for(self, reason: FinishReason, raw: str | None, words: Mapping[str, FinishReason]) -> str:
        """Return the form's word for *reason*: the provider's own one if it is among the *words* and means the same.

        In its own form an answer keeps an unknown word, and one that the presence or absence of calls overrules.
        A pause has no word in another form. The nearest is a limit, which marks the answer as incomplete.
        """
        if raw in PAUSES and raw not in words and reason is FinishReason.STOP and not self.is_own:
            reason = FinishReason.LENGTH
        means = None if raw is None else words.get(raw, reason if self.is_own else None)
        overruled = {means, reason} == {FinishReason.STOP, FinishReason.TOOL_CALLS}
        if raw is not None and (means is reason or (overruled and self.is_own)):
            return raw
        first = first_words(words)
        return first[reason if reason in first else _NEAREST[reason]]

    @staticmethod
    def frame(event: Event) -> bytes:
        """Return *event* as it is sent in a stream."""
        return named_frame(event)

    def spelled(self, event: Event) -> Event:
        """Return *event* in the spelling of the answer's server. The event may be changed."""
        return event

    def top_of(self, event: Event) -> Event:
        """Return the object in *event* that has the top fields of a body."""
        return event

    @property
    def is_error_body(self) -> bool:
        """Whether the body is that of an HTTP error."""
        return self.error is not None

    def body(self) -> Event:
        """Return the answer as a whole, or the body of an HTTP error, once it is closed."""
        error = self.error if self.is_error_body else None
        return self._body() if error is None else self.error_event(error)

    @abstractmethod
    def _body(self) -> Event:
        """Return the answer as a whole."""


def named_frame(event: Event) -> bytes:
    """Return *event* with its type as its name, as Anthropic and the Responses API send it."""
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json_of(event))


def unnamed_frame(event: Event) -> bytes:
    """Return *event* as OpenAI sends chunks: without a name. An empty event is the end marker."""
    return b"data: %s\n\n" % (json_of(event) if event else b"[DONE]")


def json_of(value: Event) -> bytes:
    """Return *value* as JSON text.

    Raises:
        ConversionError: JSON cannot hold it, such as half a surrogate pair.
    """
    try:
        return dump_json(value)
    except TypeError as error:
        cause = str(error)[:80]
    raise ConversionError(f"the answer holds what JSON cannot: {cause}")


_NEAREST: Final = {
    FinishReason.CANCELLED: FinishReason.LENGTH,  # marks the answer as incomplete
    FinishReason.CONTENT_FILTER: FinishReason.LENGTH,  # likewise
    FinishReason.TOOL_CALLS: FinishReason.STOP,
    FinishReason.ERROR: FinishReason.STOP,  # of an alternative: the answer itself becomes an error
}
"""The substitute for a meaning that a form has no word for."""


def first_words(words: Mapping[str, Any]) -> dict[Any, str]:
    """Invert a form's *words* with their meanings: the first word for each meaning."""
    return {meaning: word for word, meaning in reversed([*words.items()])}


_ADDRESS: Final = ("http://", "https://")


def logprobs_of(tokens: tuple[TokenLogprob, ...], *, with_bytes: bool = False) -> list[Event]:
    """Return *tokens* in OpenAI's format. Tokens without a probability are left out, because it cannot be made up.

    If *with_bytes*, a token without bytes gets those of its text.
    """
    results = [logprob_of(token) for token in tokens if token.logprob is not None]
    for raw in results:
        raw["top_logprobs"] = [top for top in raw["top_logprobs"] if top["logprob"] is not None]
        for entry in (raw, *raw["top_logprobs"]) if with_bytes else ():
            entry["bytes"] = entry["bytes"] or list(entry["token"].encode(errors="replace"))
    return results


def url_citation(piece: Piece, length: int) -> Event | None:
    """Return the page of *piece*, a citation, in OpenAI's format, or ``None`` if it cites something else.

    Args:
        piece: the citation.
        length: the length of the text so far: a citation without a span is of all of it.
    """
    ref = next((note for note in piece.annotations if isinstance(note, CitationRef)), None)
    if ref is None or ref.source is None or not ref.source.startswith(_ADDRESS):
        return None
    title = piece.metadata.get("title")
    start, end = ref.span or (0, length)
    about = {"start_index": start, "end_index": end}
    return {**about, "title": title if isinstance(title, str) else piece.text, "url": ref.source}

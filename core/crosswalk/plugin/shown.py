"""An answer whose deltas are shown as they come, with its end held back: what the reader does with the state.

It is no business of a plugin's.
"""

from __future__ import annotations

from typing import Any, Final

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.types.answer import Answer
from crosswalk.types.delta import UNNUMBERED, ResponseDelta, extend_delta, number_delta, with_changes
from crosswalk.types.error_segment import error_segment
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, adopted, thaw
from crosswalk.types.merge import JOIN, Places, merge
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import Segment
from crosswalk.types.usage import UsageInfo, later_usage

__all__ = ["End", "ShownAnswer", "is_token"]

_ABSENT: Final = Provenance.ABSENT  # an enum's members are slow to look up


class End:
    """How one choice ended.

    Attributes:
        reason: the canonical reason.
        raw: the provider's word, ``""`` where it ended without one; ``None`` where it did not say that it ended.
        unmapped: whether no mapping knows the word.
    """

    __slots__ = ("raw", "reason", "unmapped")

    def __init__(self, reason: FinishReason, raw: str | None, *, unmapped: bool = False) -> None:
        self.reason = reason
        self.raw = raw
        self.unmapped = unmapped


class ShownAnswer(Answer):
    """What has been received, which deltas of it were shown, and what is held back for the last one.

    Attributes:
        ends: how the choices ended, as far as is known, held back until the input has ended.
        error: the delta of the provider's error; ``None`` while there is none.
    """

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self.ends: dict[int, End] = {}
        self.error: ResponseDelta | None = None
        self._shown_usage: UsageInfo | None = None  # the last counts that a delta carried
        self._held: dict[str, Any] = {}  # extensions that came after the end, for the final delta

    @property
    def has_begun_to_end(self) -> bool:
        """Whether any choice has ended, or an error came."""
        return bool(self.ends) or self.error is not None

    def report(self, usage: UsageInfo) -> None:
        """Take a report of usage: what it does not say, an earlier one still does."""
        old, provenance = self.usage, self.provenance
        absent: list[str] = []
        if old is not None and provenance:
            if provenance.get("usage.prompt_tokens") is _ABSENT and old.prompt_tokens:
                absent.append("prompt_tokens")
            if provenance.get("usage.completion_tokens") is _ABSENT and old.completion_tokens:
                absent.append("completion_tokens")
        self.usage = later_usage(old, usage, absent)
        for name in absent:
            self.provenance.pop(f"usage.{name}", None)

    def report_shown(self, usage: UsageInfo) -> UsageInfo:
        """Take a report of usage that the next delta shows: what it is to show."""
        self.report(usage)
        shown = self._shown_usage = self.usage
        assert shown is not None
        return shown

    def show(
        self, deltas: list[ResponseDelta], usage: UsageInfo | None, news: dict[str, Any]
    ) -> list[ResponseDelta]:
        """What an event says, as the deltas that may be shown before the end: numbered, and without how it ends.

        Args:
            deltas: what it adds.
            usage: its counts; ``None`` without any.
            news: what it adds to the extensions, which hold it already.
        """
        is_news = usage is not None and self.usage is not self._shown_usage
        if not is_news and len(deltas) == 1 and _is_plain(delta := deltas[0]):  # most of any stream
            index = self.delta_count
            if usage is not None:
                shown_usage = self.report_shown(usage)
                delta = with_changes(delta, index, adopted(news) if news else EMPTY_OBJECT, shown_usage)
                deltas = [delta]
            else:
                number_delta(delta, index)
                if news:
                    extend_delta(delta, adopted(news))
            self.delta_count = index + 1
            (self.choices.get(delta.choice) or self.choice(delta.choice)).add(delta)
            return deltas
        shown: list[ResponseDelta] = []
        if usage is not None:
            if is_news and self.usage not in (None, self._shown_usage, usage):
                # What is about to be replaced before anybody saw it gets a delta of its own.
                self._shown_usage = self.usage
                self._add(ResponseDelta(usage=self.usage), shown)
            self.report(usage)
        kept = [held for delta in deltas if (held := self._without_end(delta)) is not None]
        if not kept:
            if news:
                self._show_alone(news, shown)
            return shown
        last = len(kept) - 1
        for number, delta in enumerate(kept):
            extensions, counts = delta.extensions, delta.usage
            if extensions is not EMPTY_OBJECT:
                self.extend(extensions._data, JOIN)
            if news:
                extensions, news = _joined(extensions, news), {}
            if counts is not None:
                self.report(counts)
                self._shown_usage = self.usage
            elif number == last and usage is not None:
                counts = self._shown_usage = self.usage
            if extensions is not EMPTY_OBJECT or counts is not None or not _is_plain(delta):
                delta = with_changes(delta, self.delta_count, extensions, counts)
            self._add(delta, shown)
        return shown

    def _show_alone(self, news: dict[str, Any], shown: list[ResponseDelta]) -> None:
        """Show extensions that no delta carries; what comes after the end is kept for the final one."""
        if not self.has_begun_to_end:
            self._add(ResponseDelta(extensions=FrozenObject.adopt(news)), shown)
            return
        if _replaces(news, self._held):
            self._add(ResponseDelta(extensions=FrozenObject.adopt(self._held)), shown)
            self._held = {}
        merge(self._held, news, Places(), JOIN)

    def _add(self, delta: ResponseDelta, shown: list[ResponseDelta]) -> None:
        number_delta(delta, self.delta_count)
        self.delta_count += 1
        self.choice(delta.choice).add(delta)
        shown.append(delta)

    def _without_end(self, delta: ResponseDelta) -> ResponseDelta | None:
        """*delta*, if it says more than how its choice ends; an error is held back, and the one before shown for it."""
        if delta.raw_finish_reason is None and delta.finish_reason is None:
            return delta
        if delta.segment is not None and delta.finish_reason is FinishReason.ERROR:
            earlier, self.error = self.error, delta
            for name, value in delta.extensions.items():
                self.extensions.setdefault(name, thaw(value))
            return earlier
        if delta.usage is not None:
            self.report(delta.usage)
        self.choice(delta.choice)
        return None if _says_only_the_end(delta) else delta

    def final(self, choice: int, end: End, segment: Segment | None = None) -> ResponseDelta:
        """The last delta of *choice*; of the first one the last of all, with everything that was held back."""
        held: dict[str, Any] = {}
        if choice == 0:
            held = self._held
            if self.error is not None and self.error.extensions:
                held = {**self.error.extensions.thawed(), **held}
        delta = ResponseDelta(
            self.delta_count,
            choice=choice,
            finish_reason=end.reason,
            raw_finish_reason=end.raw,
            usage=self.usage if choice == 0 else None,
            segment=segment,
            extensions=FrozenObject.adopt(held) if held else EMPTY_OBJECT,
        )
        self.delta_count += 1
        self.choice(choice).add(delta)
        return delta

    def partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Everything so far as an error response, also what was held back."""
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        errors: tuple[Segment, ...] = (error_segment(info),)
        if self.choice(0).finish is None:
            for number, end in self.ends.items():
                self.choice(number).raw_finish = end.raw
            if self.error is not None and self.error.segment is not None:
                errors = (self.error.segment, *errors)
        return self.response(FinishReason.ERROR, errors)


def _is_plain(delta: ResponseDelta) -> bool:
    """Whether *delta* may be shown as it is, once it is numbered."""
    return (
        delta.index == UNNUMBERED
        and delta.raw_finish_reason is None
        and delta.finish_reason is None
        and delta.usage is None
        and delta.extensions is EMPTY_OBJECT
    )


def _joined(own: FrozenObject, news: dict[str, Any]) -> FrozenObject:
    if not own:
        return FrozenObject.adopt(news)
    both = own.thawed()
    merge(both, news, Places(), JOIN)
    return FrozenObject.adopt(both)


def _replaces(news: dict[str, Any], held: dict[str, Any]) -> bool:
    """Whether merging *news* into *held* would overwrite something."""
    return any(
        name in held
        and not (
            isinstance(value, dict) and isinstance(held[name], dict) and not _replaces(value, held[name])
        )
        for name, value in news.items()
    )


def _says_only_the_end(delta: ResponseDelta) -> bool:
    return not (
        is_token(delta)
        or delta.refusal_delta is not None
        or delta.segment is not None
        or delta.logprobs
        or delta.extensions
    )


def is_token(delta: ResponseDelta) -> bool:
    """Whether *delta* says something that a reader of the answer sees: text, reasoning, or a tool call."""
    return (
        delta.content_delta is not None
        or delta.reasoning_delta is not None
        or delta.tool_call_delta is not None
    )

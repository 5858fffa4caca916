"""The state of one answer while it is mapped, and the rules that all providers share. Hooks get it as ``state``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, TypeVar

from crosswalk.errors import (
    ErrorInfo,
    ErrorKind,
    PluginError,
    ResponseValidationError,
    UnknownFinishReasonError,
)
from crosswalk.plugin.calls import ToolCalls
from crosswalk.plugin.take import leave_mistyped, take_integer, take_string
from crosswalk.types.answer import Answer, Call
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.message import ToolCallDelta, arguments_delta
from crosswalk.types.response import ChatResponse, as_utc
from crosswalk.types.usage import LONGEST, Cost, Provenance, UsageDetails, UsageInfo, later_usage, usage_of
from crosswalk.types.values import (
    ContentFilterResult,
    ContentFilterSeverity,
    FinishReason,
    Segment,
    error_segment,
)

T = TypeVar("T")

_ABSENT: Final = Provenance.ABSENT  # members of an enum are slow to look up
_ZERO: Final = timedelta(0)
_SEVERITIES: Final = tuple(ContentFilterSeverity)


class End:
    """The end of one choice.

    Attributes:
        reason: the canonical reason.
        raw: the provider's word, ``""`` if it ended without one, or ``None`` if the provider did not signal the end.
        unmapped: whether no mapping contains the word.
    """

    __slots__ = ("raw", "reason", "unmapped")

    def __init__(self, reason: FinishReason, raw: str | None, *, unmapped: bool = False) -> None:
        self.reason = reason
        self.raw = raw
        self.unmapped = unmapped


class MappingState(Answer):
    """The state of one answer while it is mapped. Hooks get it as ``state``.

    Attributes:
        data: the plugin's notes, which only the plugin writes to. :meth:`own` stores typed ones.
        event_name: the SSE name of the current event, or ``None`` if it has none.
        continues: whether the current event belongs to the same answer by its id, so that content after a finish word
            is part of the answer and the word was provisional. The plugin sets it, event by event.
        ends: the ends of the choices, by number, as far as they are known.
        error: the delta of the provider's error, or ``None`` as long as there is none.
        unknown_finish: the first unknown finish word, to be raised when everything has been received, or ``None``.
        has_other_ids: whether the provider has sent another id than the first.
        dialect: the one of a provider's several dialects that reads this answer, or ``None`` as long as it is unknown.
        repeated_texts: by choice, the texts, reasoning or arguments of events that repeated the choice's last event,
            since the hooks last received an event. They are part of the answer already.
        whole: the current event before anything was taken, for wrappers around hooks, or ``None`` if there are none.
    """

    is_checked = True
    event_name: str | None = None
    continues = False
    error: ResponseDelta | None = None
    unknown_finish: UnknownFinishReasonError | None = None
    has_other_ids = False
    whole: Any = None
    dialect: Any = None
    repeated_texts: Mapping[int, list[str]] = MappingProxyType({})
    _request_duration: timedelta | None = None
    _raw_created: Any = None  # as the provider wrote it

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self.data: dict[str, Any] = {}
        self.ends: dict[int, End] = {}
        self._own: dict[type[Any], Any] = {}
        self._calls: dict[int, ToolCalls] = {}

    def own(self, kind: type[T]) -> T:
        """Return the one object of class *kind* for this answer. It is made, without arguments, on the first call."""
        result = self._own.get(kind)
        if result is None:
            result = self._own[kind] = kind()
        return result

    # The origin of the answer, and its duration.

    @property
    def request_duration(self) -> timedelta | None:
        """The time from request to end, measured or reported, or ``None`` if neither.

        Raises:
            ResponseValidationError: it is set to something other than a ``timedelta`` from 0. One of more than a
                thousand years is not stored: no server takes that long.
        """
        return self._request_duration

    @request_duration.setter
    def request_duration(self, value: timedelta | None) -> None:
        given: Any = value  # a plugin may be untyped
        if given is not None and not (isinstance(given, timedelta) and given >= _ZERO):
            raise ResponseValidationError("request_duration must be a timedelta from 0")
        self._request_duration = None if value is not None and value > LONGEST else value

    def identify(
        self, *, id: str | None = None, model: str | None = None, created: datetime | None = None
    ) -> None:
        """Note the origin of the answer. The first value of each that is not empty stays.

        Raises:
            TypeError: the id or the model is not a string.
            ResponseValidationError: the time is not a ``datetime`` with a time zone. Nothing is noted then.
        """
        for value in (id, model):
            if value is not None and not isinstance(value, str):
                raise TypeError("the id and the model are strings")
        if created is not None:
            created = as_utc(created)
        if id and id != self.id:
            if self.id is None:
                self.id = id
            else:
                self.has_other_ids = True
        if model and self.model is None:
            self.model = model
        if created is not None and self.created is None:
            self.created = created

    def take_identity(
        self, event: dict[str, Any], *, id: str = "id", model: str = "model", created: str = "created"
    ) -> None:
        """Take the id, model and time of the answer from *event*. Values that differ from the first ones stay in the
        event.

        Args:
            event: the event, or the object in it that has these fields.
            id: the key of the response's id; likewise *model*.
            created: the key of the time of creation, in seconds since 1970. 0 means no time. A value before that, or
                outside the calendar, stays in the event, and is noted.

        Raises:
            WireTypeError: the id or the model is not a string.
        """
        # Most servers repeat all three in every event: one comparison removes equal ones.
        if event.get(id) == self.id is not None:
            del event[id]
        elif raw := take_string(event, id):
            if self.id is None:
                self.id = raw
            else:
                self.has_other_ids, event[id] = True, raw
        if event.get(model) == self.model is not None:
            del event[model]
        elif raw := take_string(event, model):
            if self.model is None:
                self.model = raw
            else:
                event[model] = raw
        value = event.get(created)
        if value is not None:
            if value == self._raw_created and type(value) is type(self._raw_created):
                del event[created]
            else:
                self._take_created(event, created)

    def _take_created(self, event: dict[str, Any], key: str) -> None:
        value = event[key]
        if type(value) is not int and type(value) is not float:
            leave_mistyped(event, key)
            return
        if self._raw_created is None and value:
            time = _time_of(value)
            if time is None:
                leave_mistyped(event, key)
                return
            self._raw_created = value
            if self.created is None:
                self.created = time
        if not value or (value == self._raw_created and type(value) is type(self._raw_created)):
            del event[key]

    # Notes about the answer.

    def note(self, path: str, provenance: Provenance | str | None) -> None:
        """Note why the canonical field at *path* is not the provider's own word. ``None`` removes the note.

        Raises:
            PluginError: a response has no field there.
        """
        from crosswalk.types.response import is_canonical  # most answers need no note

        if type(path) is not str or not is_canonical(path):
            raise PluginError(
                f"provider {self.provider!r}: it notes {path!r}, which is no field of a response",
                plugin=self.provider,
            )
        if provenance is None:
            self.provenance.pop(path, None)
        else:
            self.provenance[path] = Provenance(provenance)

    def note_unknown_part(self) -> None:
        """Note that a part in the place of text has a type that no mapping knows.

        The answer is then not complete, unless it has tool calls.
        """
        self.provenance["message.content"] = Provenance.UNMAPPED

    def judge(self, verdict: ContentFilterResult) -> None:
        """Note a *verdict* of the provider's moderation. The worst of each category stays; filtered content ranks
        highest.
        """
        known = self.verdicts.get(verdict.category)
        if known is None or _weight(verdict) > _weight(known):
            self.verdicts[verdict.category] = verdict

    def usage_info(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        *,
        cached_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cost: Cost | None = None,
        details: UsageDetails = UsageDetails.EMPTY,
    ) -> UsageInfo | None:
        """Return the counts of a report, or ``None`` if it has none at all. A missing count is 0 and noted as absent."""
        counts = (prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cache_write_tokens)
        if cost is None and counts.count(None) == len(counts) and details == UsageDetails.EMPTY:
            return None
        provenance = self.provenance
        if prompt_tokens is None:
            prompt_tokens, provenance["usage.prompt_tokens"] = 0, _ABSENT
        else:
            provenance.pop("usage.prompt_tokens", None)
        if completion_tokens is None:
            completion_tokens, provenance["usage.completion_tokens"] = 0, _ABSENT
        else:
            provenance.pop("usage.completion_tokens", None)
        counts = prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cache_write_tokens
        return usage_of(counts, cost, details)

    def report(self, usage: UsageInfo) -> None:
        """Take a usage report. A later report replaces an earlier one, field by field."""
        before, provenance = self.usage, self.provenance
        absent: list[str] = []
        if before is not None and provenance:
            if provenance.get("usage.prompt_tokens") is _ABSENT and before.prompt_tokens:
                absent.append("prompt_tokens")
            if provenance.get("usage.completion_tokens") is _ABSENT and before.completion_tokens:
                absent.append("completion_tokens")
        self.usage = later_usage(before, usage, absent)
        for name in absent:
            self.provenance.pop(f"usage.{name}", None)

    # Its choices.

    def begin(self, choice: int) -> None:
        """Note that *choice* has begun. It must end, too.

        Raises:
            ResponseValidationError: it is not a number from 0.
        """
        if type(choice) is not int or choice < 0:
            raise ResponseValidationError("a choice is a number from 0")
        self.choice(choice)

    def has_spoken(self, choice: int) -> bool:
        """Whether *choice* has any content from before this event: text, reasoning, a refusal, a call, a segment."""
        result = self.choices.get(choice)
        return result is not None and bool(result.parts)

    @property
    def has_begun_to_end(self) -> bool:
        """Whether any choice has ended, or an error came."""
        return bool(self.ends) or self.error is not None

    def has_ended(self, choice: int) -> bool:
        """Whether the end of *choice* was signalled."""
        return choice in self.ends

    def has_tool_calls(self, choice: int = 0) -> bool:
        """Whether *choice* has called a tool of the client's."""
        return choice in self._calls

    def tool_calls(self, choice: int = 0) -> list[Call]:
        """The calls of *choice* so far, in order of first appearance."""
        result = self.choices.get(choice)
        return [] if result is None else list(result.calls.values())

    def tool_call(
        self,
        *,
        index: int | None = None,
        id: str | None = None,
        name: str | None = None,
        arguments: str | None = None,
        choice: int = 0,
        whole: bool = False,
    ) -> ToolCallDelta:
        """Return the delta for a fragment of a tool call, by rules that hold for every provider.

        A call is found by index, else by id, else it is the open one. A fragment with an id and a name that both
        differ from that call's opens a new one, whatever its index. A missing index is never 0. An empty
        or repeated id or name is never appended.

        Args:
            index: the provider's index, or ``None`` if it sends none.
            id: the provider's id, or ``None`` or ``""`` if it sends none.
            name: the tool's name, or ``None`` or ``""`` if this fragment has none.
            arguments: argument text to append.
            choice: the choice that calls.
            whole: whether this is a whole call, never a fragment of another one.
        """
        calls = self._calls.get(choice)
        if calls is None:
            calls = self._calls[choice] = ToolCalls(self.choice(choice).calls)
        id, name = id or None, name or None
        call = calls.open(
            None if whole else calls.find(index, id, name, has_ended=choice in self.ends), index
        )
        new_id = new_name = None
        if id is not None and call.id is None and calls.identify(call, id):
            new_id = id
        call.other_id = None if id == call.id else id
        if name is not None and call.name is None:
            call.name = new_name = name
        if new_id is new_name is None and type(arguments) is str and arguments and arguments.isascii():
            return arguments_delta(call.index, arguments)  # the bulk of any stream of calls
        return ToolCallDelta(call.index, new_id, new_name, arguments or None)

    def take_tool_call(
        self,
        wire: dict[str, Any],
        function: dict[str, Any] | None = None,
        *,
        arguments: str | None,
        index: str | int | None = "index",
        id: str = "id",
        name: str = "name",
        choice: int = 0,
        whole: bool = False,
    ) -> ToolCallDelta:
        """:meth:`tool_call` for an object. The parts of its index, id and name that the call stores are taken.

        Args:
            wire: the object that has the index and the id.
            function: the object that has the name, or ``None`` for the same.
            arguments: argument text to append, taken by the caller, which knows its form.
            index: the key of the index, or the provider's value from elsewhere, which the caller has taken.
            id: the key of the id.
            name: the key of the name.
            choice: the choice that calls.
            whole: whether this is a whole call, never a fragment of another one.

        Raises:
            WireTypeError: index, id or name has another type.
        """
        said_index = take_integer(wire, index) if isinstance(index, str) else index
        said_id = take_string(wire, id)
        holder = wire if function is None else function
        said_name = take_string(holder, name)
        delta = self.tool_call(
            index=said_index, id=said_id, name=said_name, arguments=arguments, choice=choice, whole=whole
        )
        call = self.choices[choice].calls[delta.index]
        if isinstance(index, str) and said_index not in (None, call.index):
            wire[index] = said_index
        if said_id and said_id != call.id:
            wire[id] = said_id
        if said_name and said_name != call.name:
            holder[name] = said_name
        return delta

    def partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Return everything so far as an error response, including buffered content."""
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        errors: tuple[Segment, ...] = (error_segment(info),)
        if self.choice(0).finish is None:
            for number, end in self.ends.items():
                self.choice(number).raw_finish = end.raw
            if self.error is not None and self.error.segment is not None:
                errors = (self.error.segment, *errors)
        return self.response(FinishReason.ERROR, errors)


def _weight(verdict: ContentFilterResult) -> tuple[bool, int]:
    return verdict.filtered, _SEVERITIES.index(verdict.severity)


def _time_of(seconds: float) -> datetime | None:
    """Return the time, or ``None`` if it is outside every calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None

"""One event: the plugin's hooks take it apart, and the rules that are the same for every provider hold them to account."""

from __future__ import annotations

from collections.abc import Callable
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from crosswalk.errors import (
    MappingError,
    PluginError,
    TrailingContentError,
    UnknownEventError,
    WireTypeError,
)
from crosswalk.mapping.delivery import has_only_its_end, has_output
from crosswalk.mapping.ending import note_end
from crosswalk.plugin.registry import Mapper, is_cancellation
from crosswalk.plugin.state import NOTED, MappingState, empty_containers, mistyped, note_again, path_to, prune
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import MergeRules, adds_up, copy_json, dump_json, merge_rules
from crosswalk.types.usage import Provenance, UsageInfo
from crosswalk.wire.events import load_event

if TYPE_CHECKING:
    from pathlib import PurePath


Unknown: TypeAlias = Literal["raise", "keep"]
Mapped: TypeAlias = tuple[UsageInfo | None, dict[str, Any]]
"""An event's token counts, ``None`` without any, and what it changed in the extensions."""


class EventMapper:
    """Maps one event after the other with a provider's hooks.

    Args:
        mapper: the provider.
        state: the state of the answer.
        unknown: how to treat an unknown event type or finish word.
        note_unknown: called with provider, kind and word for each unknown word that is kept, or ``None``.

    Attributes:
        mapper: the provider, or the provider of the dialect in this answer.
        is_settled: whether the last event, sent again with another text, would change nothing but that text.
        may_switch: whether the answer may still turn out to be in another provider's dialect.
    """

    def __init__(
        self,
        mapper: Mapper,
        state: MappingState,
        unknown: Unknown,
        note_unknown: Callable[[str, str, str], None] | None,
    ) -> None:
        self.mapper = mapper
        self.is_settled = False
        self._state = state
        self._unknown = unknown
        self._note_unknown = note_unknown
        self._rules: MergeRules = _rules(mapper)
        self.may_switch = bool(mapper.info.speaks)
        self._is_first = True
        self._last_residue: bytes | None = None

    def map(self, event: Any, name: str | None, source: Any, deltas: list[ResponseDelta]) -> Mapped:
        """Map *event* and add its residue to the extensions.

        Args:
            event: the event, which the hooks take apart.
            name: the name from an SSE ``event:`` line, or ``None`` without one.
            source: the bytes of *event*, or an object that is not changed.
            deltas: receives the deltas one by one, so that those before an error are not lost.

        Raises:
            MappingError: the event cannot be mapped.
            PluginError: a hook violates its specification.
        """
        state = self._state
        state.event_name = name
        state.continues = self.is_settled = False
        outer = mistyped() if NOTED.values else []  # of an event with a hook that reads this one
        try:
            usage, residue = self._call_hooks(event, source, deltas)
            return usage, self._extend(residue) if residue else residue
        except UnknownEventError as error:
            if self._unknown == "raise":
                raise
            residue = self._whole(error, source)  # including what the deltas before the error took
            return None, self._extend(residue) if residue else residue
        except BaseException as error:
            failure = self._failure(error, event)
            raise failure from error.__cause__ if failure is error else error
        finally:
            if outer or NOTED.values:
                note_again(outer)

    def extend(self, residue: dict[str, Any]) -> dict[str, Any]:
        """Add *residue* to the extensions and return what changed."""
        self._last_residue = None
        return self._state.extend(residue, self._rules)

    def forget_residue(self) -> None:
        """Say that the extensions changed since the last event."""
        self._last_residue = None

    def _call_hooks(
        self, event: Any, source: Any, deltas: list[ResponseDelta]
    ) -> tuple[UsageInfo | None, dict[str, Any]]:
        """Return the event's counts and its residue. Its deltas are appended to *deltas*."""
        if self.may_switch:
            self._choose_dialect(event)
        state, mapper, ends = self._state, self.mapper, self._state.ends
        is_wire = type(source) is bytes
        sent_empty = {} if is_wire and not may_hold_empty(source) else empty_containers(event)
        had_ended, had_other_id, has_parts = bool(ends), state.has_other_ids, False
        given = mapper.map_delta(event, state)
        if type(given) is not GeneratorType and given is not None and not hasattr(type(given), "__iter__"):
            raise mapper.broken(f"map_delta gave {type(given).__name__}, not deltas")
        for delta in given or ():
            if type(delta) is not ResponseDelta:
                raise mapper.broken(f"map_delta gave {type(delta).__name__}, not ResponseDelta")
            if ends:
                if had_ended and state.has_other_ids and not had_other_id:
                    raise TrailingContentError(_ANOTHER_ID)
                if delta.choice in ends and (delta.refusal_delta is not None or has_output(delta)):
                    self._refuse_trailing(delta.choice)
            if delta.raw_finish_reason is None and delta.finish_reason is None:
                deltas.append(delta)
            elif delta.usage is None and has_only_its_end(delta):
                state.begin(delta.choice)
                self._note_end(delta)
                continue  # it is held back to the last delta of its choice
            else:
                deltas.append(delta)
                self._note_end(delta)
            if delta.tool_call_delta is not None or delta.segment is not None:
                has_parts = True
        if had_ended and state.has_other_ids and not had_other_id:
            raise TrailingContentError(_ANOTHER_ID)
        if has_parts and is_wire:
            from crosswalk.mapping.repeated import keep_repeated_keys  # most answers call no tool

            keep_repeated_keys(deltas, source)
        usage = mapper.map_usage(event, state)
        if usage is not None and type(usage) is not UsageInfo:
            raise mapper.broken(f"map_usage gave {type(usage).__name__}, not UsageInfo")
        residue = event if type(event) is dict else {"event": event}
        if residue:
            prune(residue, sent_empty)
        if mapper.extensions is not None:
            stored = mapper.extensions(event, state)
            residue = {} if stored is None else stored
            if type(residue) is not dict:
                raise mapper.broken(f"extensions gave {type(residue).__name__}, not dict")
        if NOTED.values:
            self._note_mistyped(mistyped(), residue)
        else:
            self.is_settled = True
        return usage, residue

    def _note_mistyped(self, noted: list[tuple[Any, Any]], residue: dict[str, Any]) -> None:
        wanted = {id(container) for container, _ in noted}
        located = {
            id(one.value): one for one in self._state.placed(residue, self._rules) if id(one.value) in wanted
        }
        for container, key in noted:
            one = located.get(id(container))
            path = ".".join(filter(None, ("metadata.extensions", one.path if one else None)))
            step = f".{key}" if type(key) is str else f"[{one.items[key] if one else key}]"
            self._state.note(path + step, Provenance.MISTYPED)

    def _extend(self, residue: dict[str, Any]) -> dict[str, Any]:
        """Add *residue* to the extensions and return what changed."""
        if self._is_first:
            self._is_first = self.is_settled = False
            return self._state.extend(residue, self._rules)
        # Most events leave exactly what the one before left, which need not be compared leaf by leaf.
        written = _as_bytes(residue) if len(residue) > 1 else None
        if written is not None and written == self._last_residue:
            return {}
        changes = self._state.extend(residue, self._rules)
        has_pieces = self._state.has_mixed_arrays or adds_up(residue, self._rules)
        self.is_settled = self.is_settled and not has_pieces
        self._last_residue = None if written is None or has_pieces else written
        return changes

    def _failure(self, error: BaseException, event: Any) -> BaseException:
        """The error to raise for *error*, which a hook raised in the middle of *event*."""
        if isinstance(error, WireTypeError):
            path = path_to(event, error.__dict__.pop("container", None))
            if path and error.place:
                error.place = f"{path}{error.place}" if error.place[0] == "[" else f"{path}.{error.place}"
        if (
            isinstance(error, MappingError)
            or is_cancellation(error)
            or (isinstance(error, PluginError) and error.plugin == self.mapper.provider)
        ):
            return error
        cause = f"the plugin failed with {type(error).__name__}"
        if not isinstance(error, Exception):
            return self.mapper.broken(cause)
        # A plugin's bug on an unusual payload must not surface as a bare KeyError (promise P4). The text of an error may
        # quote content. The one error text that is shown is the one that every plugin author meets first.
        text = f" ({error})" if getattr(error, "code", None) == "ACODE-RSP-009" else ""
        return MappingError(f"{cause}{text}{_line_of(error)}")

    def _whole(self, error: UnknownEventError, source: Any) -> dict[str, Any]:
        """Return the unknown event of *source* as extensions."""
        self._state.note("metadata.extensions", Provenance.UNMAPPED)
        if self._note_unknown is not None:
            self._note_unknown(self.mapper.provider, "event", error.event_type or "")
        # A hook may have taken from it before it turned out to be unknown.
        event = load_event(source, halves="mend") if type(source) is bytes else copy_json(source)
        return event if type(event) is dict else {"event": event}

    def _note_end(self, delta: ResponseDelta) -> None:
        word = note_end(self._state, self.mapper, delta)
        if word is not None and self._note_unknown is not None:
            self._note_unknown(self.mapper.provider, "finish reason", word)

    def _refuse_trailing(self, choice: int) -> None:
        if self._state.continues or self.mapper.info.repeats_finish or self._state.error is not None:
            return
        raise TrailingContentError(
            f"content after the end of choice {choice}: a second answer, or one out of order"
        )

    def _choose_dialect(self, event: Any) -> None:
        """Select the dialect of this answer by the first event that a plugin recognizes."""
        mapper = self.mapper.dialect_of(event)
        if mapper is None:
            return
        self.may_switch = False
        if mapper is not self.mapper:
            self.mapper, self._rules = mapper, _rules(mapper)


def _rules(mapper: Mapper) -> MergeRules:
    return merge_rules(mapper.info.pieces, mapper.info.cumulative)


_SHORT: Final = 4096
"""Up to here looking for the brackets of an empty object takes less time than looking at all containers."""


def may_hold_empty(data: bytes) -> bool:
    """Return whether the JSON *data* may contain an empty object or array. Indented JSON may have a space in it."""
    # `in` looks for a number first and would raise and catch an error for each byte string.
    if len(data) > _SHORT:
        return True
    return data.rfind(b"{}") >= 0 or data.rfind(b"[]") >= 0 or data[1:2] <= b" "


_ANOTHER_ID: Final = "another answer's id after the end: a second answer has begun"


def _as_bytes(residue: dict[str, Any]) -> bytes | None:
    try:
        return dump_json(residue)
    except TypeError:  # nested too deep, or returned by a hook, which may return anything
        return None


def _line_of(error: Exception) -> str:
    """Return the location of a failure in a plugin: the last line outside Crosswalk."""
    import traceback  # seldom needed, and long to load
    from pathlib import PurePath

    here = PurePath(__file__).parents[1]
    lines = [(line, PurePath(line.filename)) for line in traceback.extract_tb(error.__traceback__)]
    last, file = next((one for one in reversed(lines) if not _is_in(here, one[1])), lines[-1])
    return f" in {last.name}, line {last.lineno} of {file.name}"


def _is_in(here: PurePath, file: PurePath) -> bool:
    return here in file.parents or file.name.startswith("<attrs generated")

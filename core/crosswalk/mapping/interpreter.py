"""What one event says: the hooks of a provider, and the rules that are the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from crosswalk.errors import (
    MappingError,
    PluginError,
    TrailingContentError,
    UnknownEventError,
    WireTypeError,
)
from crosswalk.lazy import pattern
from crosswalk.mapping.ending import note_end
from crosswalk.plugin.mapper import Mapper, is_cancellation
from crosswalk.plugin.shown import is_token
from crosswalk.plugin.state import MappingState
from crosswalk.plugin.take import (
    NOTED,
    empty_containers,
    mistyped,
    note_again,
    path_to,
    prune,
    unnoted,
)
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.merge import Pieces, copy_json, has_pieces, pieces_table, placed
from crosswalk.types.metadata import Provenance
from crosswalk.types.usage import UsageInfo

if TYPE_CHECKING:
    from pathlib import PurePath

__all__ = ["Interpreter", "Said", "Unknown"]

Unknown: TypeAlias = Literal["raise", "keep"]


Said: TypeAlias = tuple[list[ResponseDelta], UsageInfo | None, dict[str, Any], dict[str, Any]]
"""What one event says: what it adds, as the plugin gave it; its counts, ``None`` without any; what the hooks have left of
it; and what of that the extensions did not hold before. A plain tuple: most of a stream makes one for each event."""


class Interpreter:
    """Lets a provider's hooks take events apart, one after the other, and lets no fault of theirs pass.

    Args:
        mapper: the provider.
        state: the state of the answer.
        unknown: what is done about an event or finish word that nobody knows.
        note_unknown: is told the provider, the kind and the word of one that is kept; ``None`` where that is news to nobody.

    Attributes:
        mapper: the provider, or the one whose dialect its server speaks in this answer.
        notes_move: whether something was noted of the event that was read last that will stand elsewhere in its like.
    """

    def __init__(
        self,
        mapper: Mapper,
        state: MappingState,
        unknown: Unknown,
        note_unknown: Callable[[str, str, str], None] | None,
    ) -> None:
        self.mapper = mapper
        self._state = state
        self._unknown = unknown
        self._note_unknown = note_unknown
        self._pieces: Pieces = pieces_table(mapper.info.pieces)
        self._may_speak = bool(mapper.info.speaks)
        self.notes_move = False
        self._last_rest: bytes | None = None

    def read(self, event: Any, name: str | None, source: Any) -> Said:
        """What *event*, of SSE name *name*, says; the extensions hold it then, and the deltas are still to be shown.

        Args:
            event: the event, which the hooks take apart.
            name: the name from an SSE ``event:`` line; ``None`` without one.
            source: what *event* was made of: bytes, or an object that stays as it is.

        Raises:
            MappingError: the event cannot be mapped; what it had said before has been shown.
            PluginError: a hook does not do as its specification says.
        """
        state = self._state
        state.event_name = name
        state.goes_on = self.notes_move = False
        before = mistyped() if NOTED.values else []  # of an event whose hook reads this one
        deltas: list[ResponseDelta] = []
        try:
            usage, rest = self._ask(event, source, deltas)
            return deltas, usage, rest, self._news(rest) if rest else rest
        except UnknownEventError as error:
            if self._unknown == "raise":
                state.show(deltas, None, {})
                raise
            rest = self._whole(error, source)  # also what the deltas say that came before
            return deltas, None, rest, self._news(rest) if rest else rest
        except BaseException as error:
            failure = self._failure(error, event, deltas)
            raise failure from error.__cause__ if failure is error else error
        finally:
            if before or NOTED.values:
                note_again(before)

    def remember(self, event: Any, name: str | None) -> None:
        """Let the hooks remember the counts of *event*, which has this SSE *name* and was read without them."""
        self._state.event_name = name
        with unnoted(), suppress(Exception):  # they have taken such counts before
            self.mapper.map_usage(event, self._state)

    def forget_rest(self) -> None:
        """Say that the extensions have changed since the last event was read here."""
        self._last_rest = None

    def _ask(
        self, event: Any, source: Any, deltas: list[ResponseDelta]
    ) -> tuple[UsageInfo | None, dict[str, Any]]:
        """What the plugin says of *event*: its deltas, put into *deltas* one by one; its usage, and what is left of it."""
        if self._may_speak:
            self._choose_dialect(event)
        state, mapper, ends = self._state, self.mapper, self._state.ends
        is_wire = type(source) is bytes
        kept = _NOTHING if is_wire and not may_be_empty(source) else empty_containers(event)
        had_ended, had_other_id, has_parts = bool(ends), state.has_other_ids, False
        given = mapper.map_delta(event, state)
        if type(given) is not GeneratorType and given is not None and not hasattr(type(given), "__iter__"):
            raise mapper.broken(f"map_delta gave {type(given).__name__}, not deltas")
        for delta in given or ():
            if type(delta) is not ResponseDelta:
                raise mapper.broken(f"map_delta gave {type(delta).__name__}, not ResponseDelta")
            if ends:  # else nothing of this can be
                if had_ended and state.has_other_ids and not had_other_id:
                    raise TrailingContentError(_ANOTHER_ID)
                if delta.choice in ends and is_token(delta):
                    self._refuse_trailing(delta.choice)
            deltas.append(delta)
            if delta.raw_finish_reason is not None or delta.finish_reason is not None:
                self._note_end(delta)
            if delta.tool_call_delta is not None or delta.segment is not None:
                has_parts = True
        if had_ended and state.has_other_ids and not had_other_id:
            raise TrailingContentError(_ANOTHER_ID)
        if has_parts and is_wire:
            from crosswalk.mapping.repeated import keep_repeated_keys  # most answers call nothing

            keep_repeated_keys(deltas, source)
        usage = mapper.map_usage(event, state)
        if usage is not None and type(usage) is not UsageInfo:
            raise mapper.broken(f"map_usage gave {type(usage).__name__}, not UsageInfo")
        rest = event if type(event) is dict else {"event": event}
        if rest:
            prune(rest, kept)
        if mapper.extensions is not None:
            said = mapper.extensions(event, state)
            rest = {} if said is None else said
            if type(rest) is not dict:
                raise mapper.broken(f"extensions gave {type(rest).__name__}, not dict")
        if NOTED.values:
            self._note_mistyped(mistyped(), rest)
        return usage, rest

    def _note_mistyped(self, noted: list[tuple[Any, Any]], rest: dict[str, Any]) -> None:
        wanted = {id(container) for container, _ in noted}
        found = {
            id(one.value): one
            for one in placed(self._state.extensions, rest, self._pieces)
            if id(one.value) in wanted
        }
        for container, key in noted:
            one = found.get(id(container))
            path = ".".join(filter(None, ("metadata.extensions", one.path if one else None)))
            place = f".{key}" if type(key) is str else f"[{one.items[key] if one else key}]"
            self.notes_move = self.notes_move or (one is not None and not one.is_fixed)
            self._state.note(path + place, Provenance.MISTYPED)

    def _news(self, rest: dict[str, Any]) -> dict[str, Any]:
        """What *rest* says that the extensions do not hold yet; they do now."""
        # Most events leave just what the one before left, so that need not be compared leaf by leaf.
        said = _as_bytes(rest) if len(rest) > 1 and self._state.delta_count else None
        if said is not None and said == self._last_rest:
            return {}
        self._last_rest = None if said is None or has_pieces(rest, self._pieces) else said
        return self._state.extend(rest, self._pieces)

    def _failure(self, error: BaseException, event: Any, deltas: list[ResponseDelta]) -> BaseException:
        """What to raise for *error*, which a hook has raised in the middle of *event*."""
        if isinstance(error, WireTypeError):
            found = path_to(event, error.__dict__.pop("container", None))
            if found and error.place:
                error.place = f"{found}{error.place}" if error.place[0] == "[" else f"{found}.{error.place}"
        if isinstance(error, MappingError):
            self._state.show(deltas, None, {})
            return error
        if is_cancellation(error) or (
            isinstance(error, PluginError) and error.plugin == self.mapper.provider
        ):
            return error
        cause = f"the plugin failed with {type(error).__name__}"
        if not isinstance(error, Exception):
            return self.mapper.broken(cause)
        # A plugin's bug on an odd payload must not surface as a bare KeyError (promise P4).
        self._state.show(deltas, None, {})
        # Of the texts of errors, which may quote content, the one that every author of a plugin meets first.
        said = f" ({error})" if getattr(error, "code", None) == "ACODE-RSP-009" else ""
        return MappingError(f"{cause}{said}{_line_of(error)}")

    def _whole(self, error: UnknownEventError, source: Any) -> dict[str, Any]:
        """The event made of *source*, of which no mapping knows the type, as extensions."""
        self._state.note("metadata.extensions", Provenance.UNMAPPED)
        if self._note_unknown is not None:
            self._note_unknown(self.mapper.provider, "event", error.event_type or "")
        # It may have been taken from before it turned out to be unknown.
        event = load_json(source) if type(source) is bytes else copy_json(source)
        return event if type(event) is dict else {"event": event}

    def _note_end(self, delta: ResponseDelta) -> None:
        word = note_end(self._state, self.mapper, delta)
        if word is not None and self._note_unknown is not None:
            self._note_unknown(self.mapper.provider, "finish reason", word)

    def _refuse_trailing(self, choice: int) -> None:
        if self._state.goes_on or self.mapper.info.repeats_finish or self._state.error is not None:
            return
        raise TrailingContentError(
            f"content after the end of choice {choice}: a second answer, or one out of order"
        )

    def _choose_dialect(self, event: Any) -> None:
        """Let the first event that anybody recognizes say whose dialect the server speaks in this answer."""
        mapper = self.mapper.dialect_of(event)
        if mapper is None:
            return
        self._may_speak = False
        if mapper is not self.mapper:
            self.mapper, self._pieces = mapper, pieces_table(mapper.info.pieces)


_EMPTY: Final = pattern(rb"\{\s*\}|\[\s*\]")
_NOTHING: Final[Container[int]] = frozenset()
_SHORT: Final = 4096
"""Up to here looking for the brackets of an empty object takes less time than looking at all containers."""
_FEW: Final = 16
"""With so many objects in its beginning a longer text has hundreds, say of tokens; else most of it is one string."""


def may_be_empty(data: bytes) -> bool:
    """Whether the JSON *data* may hold an empty object or array; who indents may write a space in it."""
    # `in` would raise and catch an error for each byte string: it looks for a number first; and what is so short is
    # looked through from its end in half the time.
    if len(data) > _SHORT:
        return data.count(b"{", 0, _SHORT) < _FEW or _EMPTY.search(data) is not None
    return data.rfind(b"{}") >= 0 or data.rfind(b"[]") >= 0 or data[1:2] <= b" "


_ANOTHER_ID: Final = "another answer's id after the end: a second answer has begun"


def _as_bytes(rest: dict[str, Any]) -> bytes | None:
    try:
        return dump_json(rest)
    except TypeError:  # nested too deep, or left by a hook, which may leave anything
        return None


def _line_of(error: Exception) -> str:
    """Where a plugin's own code failed, to spare its author the search; its text may quote content, so it is left out.

    What it called of Crosswalk's may have raised the error: it is the last line outside of that which is told.
    """
    import traceback  # seldom needed, and long to load
    from pathlib import PurePath

    here = PurePath(__file__).parents[1]
    lines = [(line, PurePath(line.filename)) for line in traceback.extract_tb(error.__traceback__)]
    last, file = next((one for one in reversed(lines) if not _is_in(here, one[1])), lines[-1])
    return f" in {last.name}, line {last.lineno} of {file.name}"


def _is_in(here: PurePath, file: PurePath) -> bool:
    return here in file.parents or file.name.startswith("<attrs generated")

"""Parsers: values of any type, or any registry of versions, from the text of a model, whole or still being written."""

from __future__ import annotations

import copy
import functools
import itertools
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Set
from typing import Any, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

import attrs

from crosswalk.schemas.metadata import Growth
from crosswalk.schemas.values import value_to_json
from crosswalk.structured.chain import Read, run_chain, run_growing
from crosswalk.structured.metrics import AnswerCache, ParserMetrics
from crosswalk.structured.repair import GrowingJSON
from crosswalk.structured.result import (
    AnswerTypeError,
    Candidate,
    MigrationError,
    ParseResult,
    Partial,
    Prose,
    ReasonCode,
    Violation,
    as_choice,
)
from crosswalk.structured.schema import Invariant, Schema, SchemaVersions
from crosswalk.types.delta import Correction, ResponseDelta
from crosswalk.types.json import load_json
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.values import FinishReason, IncompleteReason, SegmentType, checks_keywords
from crosswalk.words import suggests_names

# -------------------------------------------------------------------------- partial parser
# An answer that is still being written, read as it grows.


T = TypeVar("T")
Answer: TypeAlias = str | ChatResponse | Alternative | ToolCall

_EVERY_PIECE_UP_TO: Final = 256
_SHARE: Final = 16
_LOOKS_PER_CHARACTER: Final = 32


class PartialParser(Generic[T]):
    """Takes the pieces of a text and gives partial values.

    A text that is JSON so far is read piece by piece, and each final item of a list is looked at once. Each character
    pays for 32 looks at other parts, so that the steps of a long map or text may be some characters apart. Any other text
    is read from its beginning: up to 256 characters at every piece, after that whenever it has grown by a 16th. So the
    work adds up to a fixed number of looks at each character, however small the pieces are.
    """

    def __init__(
        self, read: Read[T], prefill: str = "", schema: Schema[Any] | SchemaVersions[Any] | None = None
    ) -> None:
        self._read = read
        self._schema = schema
        self._pieces = [prefill]
        self._size = self._prefill_size = len(prefill)
        self._next = 1
        self._last: T | None = None
        self._state: tuple[Any, Set[str]] = (None, frozenset())
        self._begin(prefill)

    def _begin(self, text: str) -> None:
        self._growth, self._read_growing = Growth(), self._read
        if isinstance(self._schema, Schema):
            self._read_growing = functools.partial(self._schema.read, growth=self._growth)
        self._growing = GrowingJSON(self._schema is not None and self._schema.has_decimal)
        self._growing.feed(text)
        self._is_new = bool(text)

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join(self._pieces)

    def feed(self, piece: str | Correction) -> ParseResult[T] | None:
        """Take a piece, or a correction of the pieces so far.

        Returns:
            A step with other fields, or another partial value, than the last one, or ``None``.
        """
        if isinstance(piece, str):
            self._pieces.append(piece)
            self._size += len(piece)
            if self._growing.is_sound and not self._growing.feed(piece):
                self._next = 0
        elif piece.type is SegmentType.TEXT:
            text, start, end = self.text, self._prefill_size + piece.start, self._prefill_size + piece.end
            self._pieces = [text[:start] + piece.text + text[end:]]
            self._size, self._next = len(self._pieces[0]), 0
            self._begin(self._pieces[0])
        self._is_new = True
        return None if self._size < self._next else self._step()

    def _step(self) -> ParseResult[T] | None:
        self._is_new = False
        gap = self._size // _SHARE if self._size > _EVERY_PIECE_UP_TO else 0
        if self._growing.is_sound:
            if not self._growing.has_changed:
                return None
            result = run_growing(self._read_growing, self._growing, self._growth, self._schema)
            work = self._growth.work if isinstance(self._schema, Schema) else self._size
            gap = min(gap, work // _LOOKS_PER_CHARACTER)
        else:
            self._pieces = [self.text]
            text, end_reason = self._pieces[0], ReasonCode.TRUNCATED
            result = run_chain(
                self._read, text, end_reason, Partial.ACCEPT, None, self._schema, is_stream=True
            )
        self._next = self._size + 1 + gap
        state = result.fields, result.final
        is_known = not self._growing.is_sound and state == self._state and is_same(result.value, self._last)
        self._last, self._state = result.value, state
        return None if is_known or (result.value is None and not result.fields) else result

    def last_step(self, result: ParseResult[T]) -> ParseResult[T]:
        """Return *result*, that of the whole answer, with the fields of the last step."""
        if self._is_new:
            self._step()
        fields, final = self._state
        return result if fields is None else attrs.evolve(result, fields=fields, final=final)


def is_same(value: Any, last: Any) -> bool:
    """Return whether *value* equals the *last* one. A class may define equality in any way."""
    try:
        return bool(value == last)
    except Exception:
        return False


# ---------------------------------------------------------------------------------- parser
# Parsers: values of any attrs class, or any registry of versions, from the text of a model.


_CODE_BY_INCOMPLETE_REASON: Final[dict[IncompleteReason | None, ReasonCode]] = {
    **dict.fromkeys(IncompleteReason, ReasonCode.TRUNCATED),
    IncompleteReason.CANCELLED: ReasonCode.CANCELLED,
    IncompleteReason.CONTENT_FILTER: ReasonCode.CONTENT_FILTER,
    IncompleteReason.ERROR: ReasonCode.ANSWER_ERROR,
    IncompleteReason.REFUSAL: ReasonCode.REFUSAL,
}
_CODE_BY_FINISH_REASON: Final = {
    FinishReason.LENGTH: ReasonCode.TRUNCATED,
    FinishReason.CANCELLED: ReasonCode.CANCELLED,
    FinishReason.CONTENT_FILTER: ReasonCode.CONTENT_FILTER,
    FinishReason.ERROR: ReasonCode.ANSWER_ERROR,
}


def reason_for_ending(finish_reason: FinishReason | None) -> ReasonCode | None:
    """Return why an answer that ended so is not whole, or ``None`` if it is, or if that is unknown."""
    return None if finish_reason is None else _CODE_BY_FINISH_REASON.get(finish_reason)


def reason_for_response(response: Alternative | ChatResponse) -> ReasonCode | None:
    """Return why *response* is not a whole answer, or ``None`` if it is.

    A response that pauses, or has a part that cannot be read, is taken for one that was cut.
    """
    return _CODE_BY_INCOMPLETE_REASON.get(response.incomplete_reason)


class _Options(TypedDict, Generic[T], total=False):
    invariants: Iterable[Invariant[T]]
    version: str | None
    metrics: ParserMetrics | None
    cache: AnswerCache | None
    prefill: str
    prose: Prose | Literal["allow", "refuse"]
    unwrap: str | None
    refuse_doubtful: bool


@suggests_names
class StructuredParser(Generic[T]):
    """Reads values of one schema from the text of a model: directly, extracted or repaired, or gives the reason why not.

    Any text gives a valid value or a reason, never an exception. A parser keeps no state between answers, so one
    may serve any number of threads and tasks.

    Args:
        schema: a type, such as an attrs class, a dataclass, an enum or ``list[Book]``, a JSON Schema as a dict, a
            :class:`Schema`, or the :class:`SchemaVersions` of one.
        invariants: the rules that a value must satisfy. For a class only.
        version: the version that every value is converted to, or ``None`` to leave each in its own. For a registry only.
        metrics: counts every parse, or ``None`` to count nothing.
        cache: stores results by text, or ``None`` to parse each time.
        prefill: the beginning of the answer that the request already contained, such as ``{``, and that no answer
            repeats. It is put before each text.
        prose: whether text may surround the value: ``"allow"`` or ``"refuse"``.
        unwrap: the key of an object around the answer that is opened, such as ``result`` or ``arguments``, or ``None``
            to open none.
        refuse_doubtful: refuse an unknown key if an optional one is absent, such as ``weight`` for ``weight_kg``. By
            default it is ignored, and ``ParseResult.unknown`` lists it.

    Raises:
        ConfigurationError: *prose* is neither.
        SchemaDefinitionError: the class cannot be a schema.
        UnknownSchemaVersionError: *version* is not registered.
    """

    @overload
    def __init__(
        self, schema: type[T] | Schema[T] | SchemaVersions[T], **options: Unpack[_Options[T]]
    ) -> None: ...
    @overload
    def __init__(self: StructuredParser[Any], schema: object, **options: Unpack[_Options[Any]]) -> None: ...
    @checks_keywords()
    def __init__(
        self,
        schema: Any,
        *,
        invariants: Iterable[Invariant[T]] = (),
        version: str | None = None,
        metrics: ParserMetrics | None = None,
        cache: AnswerCache | None = None,
        prefill: str = "",
        prose: Prose | Literal["allow", "refuse"] = Prose.ALLOW,
        unwrap: str | None = None,
        refuse_doubtful: bool = False,
    ) -> None:
        is_schema = isinstance(schema, Schema | SchemaVersions)
        if is_schema and invariants:
            raise TypeError("invariants belong into the Schema, or the registry")
        resolved_schema: Schema[T] | SchemaVersions[T] = schema if is_schema else Schema(schema, invariants)
        if isinstance(resolved_schema, SchemaVersions):
            if unwrap is not None or refuse_doubtful:
                raise TypeError("unwrap and refuse_doubtful are for a type or a Schema, not for a registry")
            resolved_schema.schema(
                resolved_schema.default
            )  # refuses an empty one, or one without such a default
        elif version is not None:
            raise TypeError("only a registry of versions has a version to bring values to")
        elif unwrap is not None or refuse_doubtful:
            resolved_schema = attrs.evolve(resolved_schema, unwrap=unwrap, refuse_doubtful=refuse_doubtful)
        self.schema = resolved_schema
        self.version = version
        self._read: Read[T] = _reader(resolved_schema, version)
        self._metrics = metrics
        self._cache = cache
        self._prefill = prefill
        self._prose = as_choice(Prose, prose)
        self._is_bare = metrics is None and cache is None and not prefill
        self._key = object()  # results are this parser's own

    def parse(self, answer: Answer, *, partial: Partial = Partial.REFUSE) -> ParseResult[T]:
        """Read one answer.

        Args:
            answer: a text, a response, one of its alternatives, or a tool call with the arguments to read. A text itself
                shows whether it is whole. For a response or an alternative the finish reason decides: one that was
                truncated, cancelled, stopped by moderation or is an error is never taken for a whole one, whatever its
                text looks like.
            partial: how to treat an answer that ends in the middle.

        Raises:
            ConfigurationError: *partial* is not a :class:`Partial`.
            AnswerTypeError: *answer* is something else.
        """
        if isinstance(answer, ToolCall):
            return self.parse_tool_call(answer, partial=partial)
        if self._is_bare and isinstance(answer, str):
            return run_chain(self._read, answer, None, partial, None, self.schema, self._prose)
        return self._parse(*self._text_and_ending(answer), partial)

    def parse_tool_call(
        self,
        call: ToolCall,
        *,
        finish_reason: FinishReason | None = None,
        partial: Partial = Partial.REFUSE,
    ) -> ParseResult[T]:
        """Read the arguments of a tool call, by the same chain. A call without arguments is an empty object.

        Args:
            call: the call.
            finish_reason: why the response with the call ended, or ``None`` if unknown.
            partial: how to treat arguments that end in the middle.
        """
        return self._parse(call.arguments.strip() or "{}", reason_for_ending(finish_reason), partial)

    def parse_stream(
        self, pieces: Iterable[str | ResponseDelta], *, partial: Partial = Partial.REFUSE
    ) -> Iterator[ParseResult[T]]:
        """Read an answer while it is written.

        Args:
            pieces: pieces of the text, or deltas. Only the deltas of the first choice count.
            partial: how to treat, in the end, an answer that ends in the middle.

        Yields:
            A step whenever the answer has grown: its ``fields``, the paths of those that are ``final``, and a partial value
            once all required fields are there. The last item of a list is left out of the value until it is valid. The last
            step is the result for the whole answer, as :meth:`parse` gives it, with its fields. Deltas without a finish
            reason are not a whole answer. A draft may come before the answer: only the end shows which one counts.
        """
        partial = as_choice(Partial, partial)
        stream = _Stream(self.partial_parser(), self._prefill)
        for piece in pieces:
            if (partial_result := stream.take(piece)) is not None:
                yield partial_result
        yield stream.answer.last_step(self._parse(stream.text, stream.reason(), partial))

    async def aparse_stream(
        self, pieces: AsyncIterable[str | ResponseDelta], *, partial: Partial = Partial.REFUSE
    ) -> AsyncIterator[ParseResult[T]]:
        """As :meth:`parse_stream`, for a source that is awaited."""
        partial = as_choice(Partial, partial)
        stream = _Stream(self.partial_parser(), self._prefill)
        async for piece in pieces:
            if (partial_result := stream.take(piece)) is not None:
                yield partial_result
        yield stream.answer.last_step(self._parse(stream.text, stream.reason(), partial))

    def with_null_as_default(self) -> StructuredParser[T]:
        """Return the same parser, but a null for an optional key that cannot be null means its default."""
        if not isinstance(self.schema, Schema) or self.schema.null_is_default:
            return self
        parser_copy = copy.copy(self)
        parser_copy.schema = attrs.evolve(self.schema, null_is_default=True)
        parser_copy._read, parser_copy._key = parser_copy.schema.read, object()
        return parser_copy

    def partial_parser(self) -> PartialParser[T]:
        """Return a reader of an answer for a caller that receives the pieces. It gives partial values alone."""
        return PartialParser(self._read, self._prefill, self.schema)

    def _text_and_ending(self, answer: str | ChatResponse | Alternative) -> tuple[str, ReasonCode | None]:
        if isinstance(answer, str):
            return self._prefill + answer, None
        if isinstance(answer, ChatResponse | Alternative):
            return self._prefill + answer.message.text, reason_for_response(answer)
        raise AnswerTypeError(
            f"an answer is a str, a ChatResponse, an Alternative or a ToolCall, not {type(answer).__name__}"
        )

    def _parse(self, text: str, end_reason: ReasonCode | None, partial: Partial) -> ParseResult[T]:
        if self._cache is None:
            return self._measured(text, end_reason, partial)
        key = (self._key, text, end_reason, as_choice(Partial, partial))
        cached_result: ParseResult[T] | None = self._cache.get(key)
        if cached_result is None:
            cached_result = self._measured(text, end_reason, partial)
            self._cache.put(key, cached_result, is_negative=cached_result.value is None)
        return cached_result

    def _measured(self, text: str, end_reason: ReasonCode | None, partial: Partial) -> ParseResult[T]:
        if self._metrics is None:
            return run_chain(self._read, text, end_reason, partial, None, self.schema, self._prose)
        laps = [("", time.perf_counter())]

        def lap(stage: str) -> None:
            laps.append((stage, time.perf_counter()))

        result = run_chain(self._read, text, end_reason, partial, lap, self.schema, self._prose)
        seconds = {
            stage: lap_end - lap_start for (_, lap_start), (stage, lap_end) in itertools.pairwise(laps)
        }
        seconds["total"] = time.perf_counter() - laps[0][1]
        self._metrics.record(result.stage, result.reason, seconds)
        return result


@overload
def parse(
    answer: Answer, kind: type[T] | Schema[T], *, partial: Partial = ..., **options: Any
) -> ParseResult[T]: ...
@overload
def parse(answer: Answer, kind: object, *, partial: Partial = ..., **options: Any) -> ParseResult[Any]: ...
def parse(
    answer: Answer, kind: Any, *, partial: Partial = Partial.REFUSE, **options: Any
) -> ParseResult[Any]:
    """Read one answer as *kind*, with a :class:`StructuredParser` that is kept for the next answer.

    Args:
        answer: a text, a response, one of its alternatives, or a tool call.
        kind: a type, a JSON Schema as a dict, or a :class:`Schema`.
        partial: how to treat an answer that ends in the middle.
        options: the further options of :class:`StructuredParser`, such as ``prose`` or ``unwrap``.

    Raises:
        SchemaDefinitionError: *kind* cannot be a schema.
    """
    try:
        parser = _parser_of(kind, **options)
    except TypeError:  # it has no hash, or the options are wrong
        parser = StructuredParser(kind, **options)
    return parser.parse(answer, partial=partial)


@functools.lru_cache(maxsize=256)
def _parser_of(kind: Any, **options: Any) -> StructuredParser[Any]:
    return StructuredParser(kind, **options)


def _reader(schema: Schema[Any] | SchemaVersions[Any], version: str | None) -> Read[Any]:
    if isinstance(schema, Schema) or version is None:
        return schema.read
    target_schema = schema.schema(version)

    def read_and_migrate(data: Any) -> Candidate[Any]:
        candidate = schema.read(data)
        value, named_version = candidate.value, candidate.version
        if value is None:
            return candidate
        try:
            migrated = schema.migrate(value, version)
            if migrated is value:
                return candidate
            migrated_json = load_json(value_to_json(migrated))
        except (MigrationError, TypeError, RecursionError) as error:
            problem = str(error) if isinstance(error, MigrationError) else f"not JSON of version {version}"
            return Candidate(None, (Violation(problem, code=ReasonCode.MIGRATION_FAILED),), named_version)
        # A user's function made it: it must be a possible answer of that version.
        migrated_candidate = target_schema.read(migrated_json)
        return migrated_candidate._replace(
            violations=tuple(map(_as_failed_migration, migrated_candidate.violations)), version=named_version
        )

    return read_and_migrate


def _as_failed_migration(violation: Violation) -> Violation:
    if violation.code is ReasonCode.INVARIANT_VIOLATION:
        return violation
    return attrs.evolve(violation, code=ReasonCode.MIGRATION_FAILED)


class _Stream(Generic[T]):
    """The pieces of a stream, and the reason of its end."""

    def __init__(self, answer: PartialParser[T], prefill: str) -> None:
        self.answer = answer
        self._prefill = prefill
        self.ended: ReasonCode | None = None
        self._is_finished = False
        self._is_refused = False

    @property
    def text(self) -> str:
        """The whole text so far."""
        return self.answer.text

    def reason(self) -> ReasonCode | None:
        """Why the answer is not whole, or ``None`` if it is."""
        if self.ended is None and self._is_refused and not self.text.removeprefix(self._prefill).strip():
            return ReasonCode.REFUSAL
        return self.ended

    def take(self, piece: str | ResponseDelta) -> ParseResult[T] | None:
        if isinstance(piece, str):
            return self.answer.feed(piece)
        if not isinstance(piece, ResponseDelta):
            raise AnswerTypeError(f"a piece is a str or a ResponseDelta, not {type(piece).__name__}")
        if piece.choice != 0:
            return None
        self._is_refused = self._is_refused or piece.refusal_delta is not None
        if piece.finish_reason is not None:
            self._is_finished = True
            self.ended = reason_for_ending(piece.finish_reason)
        elif not self._is_finished:
            self.ended = ReasonCode.TRUNCATED  # until a later one has its finish reason
        new_content = piece.content_delta if piece.correction is None else piece.correction
        return None if new_content is None else self.answer.feed(new_content)

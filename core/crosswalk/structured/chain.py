"""The chain: the whole text, JSON in the text, mended JSON, failure with its reason."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from crosswalk.schemas.check import folded_key
from crosswalk.schemas.metadata import Growth
from crosswalk.structured.repair import (
    CLOSING_QUOTES,
    FULL_WIDTH,
    NO_JSON,
    QUOTES,
    SPACE,
    GrowingJSON,
    Reading,
    UnreadableError,
    loads,
    read_json,
)
from crosswalk.structured.result import (
    Candidate,
    Choice,
    FinalPaths,
    ParseResult,
    Partial,
    Prose,
    ReasonCode,
    Stage,
    Violation,
    as_choice,
    direct_success,
)
from crosswalk.structured.scan import ANSWER_NAMES, HEADING, Region, RegionKind, RegionPlace, scan
from crosswalk.structured.schema import Schema, SchemaVersions, exact_copy, reason_of
from crosswalk.types.json import dump_json

# ------------------------------------------------------------------------------- remainder
# The relation of the text around an object to it, judged by its structure alone.


_QUOTED: Final = rf"[{QUOTES}]?[^{QUOTES}\n]{{1,99}}[{QUOTES}]"  # whose beginning may have been cut off
_HARMLESS_CLOSERS: Final = re.compile(r"[\s}\])>;`]*+")
_MEMBER_NEXT: Final = re.compile(rf"[{{\[]?{SPACE}*+{_QUOTED}{SPACE}*+:")
_JSON_SIGN: Final = re.compile(r"[\"':\d]")
_COMMA: Final = re.compile(
    rf",{SPACE}*+(?:(?P<structure>[{QUOTES}{{\[]|[A-Za-z_$][\w$-]*+{SPACE}*+:)|(?P<scalar>[-\d]|true\b|false\b|null\b))"
)
_ENDS_IN_NUMBER: Final = re.compile(r"\d\.?[\s\]}]*+\Z")
_NUMBER_IN_BRACES: Final = re.compile(r"(?<!\S)\{\s*+[.\d]")
_BRACKET: Final = re.compile(r"[{}\[\]]")
_EMOTICON: Final = re.compile(r"[:;]['-]?\Z")
_KEY_BEFORE: Final = re.compile(rf"{_QUOTED}{SPACE}*:{SPACE}*\Z")
_OPERAND: Final = re.compile(r"""\s*+[+*]\s*+[\[{("'\d]|\.\w+\s*+[(=]|\[["']|\s+if\b[^\n]{1,80}\belse\b""")
_DOTS: Final = re.compile(r"[\s`~]*+[\[(]?(?:\.{3}|\u2026)++[\])]?(?=\s|\Z)")
_MEMBER: Final = re.compile(
    rf"(?:[{QUOTES}](?=[^{QUOTES}\n]+[{QUOTES}])|\b\.(?=\w+\s*+[-+*/]?=[^=]))([^{QUOTES}\n=:]+?)[{QUOTES}]?\]?"
    r"\s*+[-+*/]?[:=]\s*+[^\s}]"
)
_BARE_MEMBER: Final = re.compile(
    r"(?:\A|\n)[ \t/#*>|=\u2192\u21d2-]*+([A-Za-z_][\w-]*+)[*`]*+"
    r"\s?(?:[-=]>|[:=\u2192\u21d2])\s*+(?:[\"'\[\d-]|true\b|false\b|null\b)"
)
_LONGEST_LABEL: Final = 80
_YAML_KEY: Final = re.compile(r"(?:\A|\n)[ \t]*(?:- )?[\w-]+:[ \t]*\Z")
_YAML_MEMBER: Final = re.compile(r"^[ \t]*(?:- )?([\w-]+):[ \t]++\S", re.MULTILINE)


def continues(text: str, start: int, end: int, remainder: str, is_region_next: bool) -> bool:
    """Whether *remainder*, the text right behind the object from *start* to *end*, is a part of it that was cut off.

    Closing brackets, a semicolon or a quote too many at its beginning are harmless.

    Args:
        text: the whole text.
        start: where the object begins.
        end: where it ends.
        remainder: the text up to the next fence, tag or object.
        is_region_next: whether an object follows *remainder*.
    """
    remainder = remainder.translate(FULL_WIDTH)
    closers = _HARMLESS_CLOSERS.match(remainder)
    position = closers.end() if closers else 0
    is_closed_again = bool(set("}]") & set(remainder[:position]))
    if _KEY_BEFORE.search(text, max(start - _LONGEST_LABEL, 0), start) and (
        is_closed_again or remainder[position : position + 1] == ","
    ):
        return True
    if remainder[position:].strip() == "," and is_region_next:
        return True
    if _MEMBER_NEXT.match(remainder, position):
        return True
    if _NUMBER_IN_BRACES.search(remainder) and _ENDS_IN_NUMBER.search(
        text, max(start, end - _LONGEST_LABEL), end
    ):
        return True  # the brackets part one number
    comma = _COMMA.match(remainder, position)
    if comma and comma["structure"]:
        return True
    quote = remainder[:1]
    is_quote_before = text[start - 1 : start] in CLOSING_QUOTES
    if quote in CLOSING_QUOTES and not is_quote_before and quote in remainder[1:].partition("\n")[0]:
        return True
    closer_position = _unopened(remainder, position)
    if closer_position is None or _EMOTICON.search(remainder, 0, closer_position):
        return False
    return comma is not None or _JSON_SIGN.search(remainder, 0, closer_position) is not None


def _unopened(remainder: str, position: int) -> int | None:
    """Return the position of the first bracket that closes more than is opened behind *position*."""
    depth = 0
    for bracket in _BRACKET.finditer(remainder, position):
        depth += 1 if bracket[0] in "{[" else -1
        if depth < 0:
            return bracket.start()
    return None


def is_operand(text: str, end: int) -> bool:
    """Whether the object that ends at *end* is an operand of a program."""
    return _OPERAND.match(text, end) is not None


def is_elided(text: str, end: int) -> bool:
    """Return whether there are dots right behind the object that ends there. An excerpt has them at both ends."""
    return _DOTS.match(text, end) is not None and not text.lstrip().startswith(("...", "\u2026"))


def member_keys(text: str) -> frozenset[str]:
    """Return the keys with a value in *text*, as :func:`folded_key` writes them, whether brackets are around them or not."""
    text = text.translate(FULL_WIDTH)
    return frozenset(map(folded_key, _MEMBER.findall(text) + _BARE_MEMBER.findall(text)))


def is_among_own_keys(text: str, start: int, end: int, keys: frozenset[str]) -> bool:
    """Return whether the object from *start* to *end* is the value of a key of YAML, and keys next to it are in *keys*."""
    if _YAML_KEY.search(text, max(start - _LONGEST_LABEL, 0), start) is None:
        return False
    return not keys.isdisjoint(map(folded_key, _YAML_MEMBER.findall(text[:start] + text[end:])))


# ----------------------------------------------------------------------------------- chain
# The chain: the whole text, JSON in the text, mended JSON, failure with its reason.


T = TypeVar("T")

_Schema: TypeAlias = Schema[Any] | SchemaVersions[Any]
Read: TypeAlias = Callable[[Any], Candidate[T]]
"""Makes a candidate of decoded JSON. Never raises."""


def extract_json(text: str) -> str | None:
    """Return the first object or array in *text* that is whole and valid JSON, else the first that has an end.

    Reasoning is left out. Fenced blocks of any label come before objects in prose. Text inside another
    object, or inside a string, is not searched.

    Returns:
        The unchanged part of the text, or ``None``.
    """
    regions = [region for region in scan(text).regions if region.is_closed]
    regions.sort(key=lambda region: not region.is_fenced)
    whole_texts = (region.text for region in regions if loads(region.text) is not NO_JSON)
    return next(whole_texts, regions[0].text if regions else None)


def repair_json(broken_json: str) -> str | None:
    """Mend the structure of malformed JSON. Its content is unchanged.

    Open brackets are closed if nothing in them can have been cut, and no array is open.

    Returns:
        JSON, or ``None`` if it cannot be mended, or more is missing than brackets.
    """
    text = broken_json.lstrip()
    for is_cut in (False, True):
        try:
            reading = read_json(text, is_cut=is_cut)
        except UnreadableError:
            continue
        is_whole = reading.is_between if is_cut or reading.is_open else True
        return dump_json(reading.value).decode() if is_whole and reading.cut is None else None
    return None


def run_chain(
    read: Read[T],
    text: str,
    end_reason: ReasonCode | None,
    partial: Partial,
    lap: Callable[[str], None] | None = None,
    schema: _Schema | None = None,
    prose: Prose = Prose.ALLOW,
    is_stream: bool = False,
) -> ParseResult[T]:
    """Try one stage after the other.

    Args:
        read: makes a value of decoded JSON.
        text: the text of the model.
        end_reason: why the text is not a whole answer, or ``None`` if it is, or if that is unknown.
        partial: how to treat an answer that ends in the middle.
        lap: called with ``parse``, ``extract`` and ``repair`` when each has been tried, or ``None``.
        schema: the schema of *read*, so that a part of the answer next to it is noticed, or ``None``.
        prose: whether text may surround the value.
        is_stream: whether more of *text* is to come, so that no default may fill a field that has not come yet.

    Raises:
        ConfigurationError: *partial* is not a :class:`Partial`.
    """
    if type(partial) is not Partial:
        partial = as_choice(Partial, partial)
    if end_reason is not None and partial is Partial.REFUSE:
        return ParseResult(None, Stage.FAILURE, end_reason)
    text = text.removeprefix("\ufeff")  # the mark of a byte order
    is_exact = schema is not None and schema.has_decimal
    data = loads(text, is_exact=is_exact)
    best_candidate = None
    if data is not NO_JSON:
        best_candidate = read(data)
    if lap is not None:
        lap("parse")
    if best_candidate is not None:
        if (
            best_candidate.value is not None and end_reason is None
        ):  # nearly every answer, which ought to cost nothing more
            return direct_success(best_candidate)
        if best_candidate.value is not None:
            return _with_fields(_given(Stage.DIRECT, best_candidate, end_reason), data, schema)
        if type(data) is not str:  # valid JSON: nothing to extract, nothing to repair
            failed_result = _failed(reason_of(best_candidate.violations), end_reason, best_candidate)
            return _with_fields(failed_result, data, schema) if is_stream else failed_result
        text = data  # JSON in a string of JSON
    return _Search(read, text, end_reason, partial, best_candidate, schema, prose, is_stream).run(lap)


def _given(
    stage: Stage, candidate: Candidate[T], end_reason: ReasonCode | None, choice: Choice | None = None
) -> ParseResult[T]:
    return ParseResult(
        candidate.value,
        stage,
        end_reason or ReasonCode.SUCCESS,
        partial=end_reason is not None,
        schema_version=candidate.version,
        choice=choice,
        unknown=candidate.unknown,
        renamed=candidate.renamed,
        opened=candidate.opened,
    )


def _with_fields(
    result: ParseResult[T],
    data: Any,
    schema: _Schema | None,
    open_path: tuple[str | int, ...] | None = None,
    growth: Growth | None = None,
) -> ParseResult[T]:
    """*result* of an answer that is not whole, with the fields that *data* has."""
    if result.ok or type(data) not in (dict, list):
        return result
    if isinstance(schema, Schema):
        fields, open_path = schema.named(data, open_path, growth)
    else:
        fields = exact_copy(data, growth)
    return attrs.evolve(result, fields=fields, final=FinalPaths(fields, open_path))


def run_growing(
    read: Read[T], growing: GrowingJSON, growth: Growth, schema: _Schema | None
) -> ParseResult[T]:
    """As :func:`run_chain` of an answer that is still being written, with ``Partial.ACCEPT``. Its text is JSON so far.

    Args:
        read: makes a value of decoded JSON. It may look at the final items of a list once.
        growing: the text so far.
        growth: the lists in it.
        schema: the schema of *read*, or ``None``.
    """
    growth.begin()
    reading = _begun(growing, growth)
    failed_result: ParseResult[T] = ParseResult(None, Stage.FAILURE, ReasonCode.TRUNCATED)
    failed_result = _with_fields(failed_result, reading.value, schema, reading.open_path, growth)
    if reading.open_path is None:
        best_candidate = read(reading.value)
        if best_candidate.value is None:
            return attrs.evolve(
                failed_result, violations=best_candidate.violations, schema_version=best_candidate.version
            )
        return _told(Stage.DIRECT, best_candidate, failed_result)
    if not growth.is_waiting:
        second_reading = _begun(growing, growth)
        given_candidate, open_text_path = _partially(read, second_reading)
        if _is_whole(given_candidate, second_reading):
            return _told(Stage.REPAIR, given_candidate, failed_result, open_text_path)
    for index, items in reversed([*enumerate(_open_lists(reading))]):
        key = growth.source(items), len(items)
        if growth.shortened.get(index, (None, None))[0] != key:  # without its last item all of it is final
            second_reading = _begun(growing, growth)
            _open_lists(second_reading)[index].pop()
            given_candidate = read(second_reading.value)
            growth.shortened[index] = (
                key,
                given_candidate if _is_whole(given_candidate, second_reading) else None,
            )
        if (known_candidate := growth.shortened[index][1]) is not None:
            return _told(Stage.REPAIR, known_candidate, failed_result)
    return failed_result


def _begun(growing: GrowingJSON, growth: Growth) -> Reading:
    reading = growing.reading(growth.note)
    growth.open = reading.open
    return reading


def _given_so_far(
    read: Read[T], reading: Reading, failed_result: ParseResult[T], *, is_stream: bool
) -> ParseResult[T]:
    """The value of an answer that ends in the middle, or *failed_result*.

    In a stream no default may fill a field that has not come yet. The last items of lists are left out where they
    are not valid yet.
    """
    given_candidate, open_text_path = _partially(read, reading)
    if given_candidate.value is not None and (not is_stream or _is_whole(given_candidate, reading)):
        return _told(Stage.REPAIR, given_candidate, failed_result, open_text_path)
    for items in reversed(_open_lists(reading) if is_stream else ()):
        last_item = items.pop()
        given_candidate = read(reading.value)
        items.append(last_item)
        if _is_whole(given_candidate, reading):
            return _told(Stage.REPAIR, given_candidate, failed_result)
    return failed_result


def _told(
    stage: Stage, candidate: Candidate[T], failed_result: ParseResult[T], cut_path: str | None = None
) -> ParseResult[T]:
    """The partial value *candidate*, with the fields of *failed_result*."""
    result = _given(stage, candidate, failed_result.reason)
    return attrs.evolve(result, cut=cut_path, fields=failed_result.fields, final=failed_result.final)


def _is_whole(candidate: Candidate[Any], reading: Reading) -> bool:
    """Whether there is a value, and no default in it fills a field that may still come."""
    return candidate.value is not None and not any(candidate.defaulted.get(each) for each in reading.open)


def _open_lists(reading: Reading) -> list[list[Any]]:
    """The lists with a last item that may go on, from the outermost one on."""
    open_lists: list[list[Any]] = []
    value: Any = reading.value
    for key in reading.open_path or ():
        if type(value) is dict:
            value = value.get(key)
            continue
        if key == len(value):  # a text that cannot be valid yet, and was left out
            break
        open_lists.append(value)
        value = value[key]
    return open_lists


def _partially(read: Read[T], reading: Reading) -> tuple[Candidate[T], str | None]:
    """Return the known part of a value, and the path of the text in it that may continue, or ``None`` if none does.

    A text at the end is included only if a longer one might be valid as well. Otherwise a word from a list of words, or
    a date, would be given as if it were whole.
    """
    if reading.cut_in is not None:
        box, key = reading.cut_in
        cut_text = box[key]
        box[key] += "\ufffd"
        longer_candidate = read(reading.value)
        if longer_candidate.value is not None or all(
            v.code is ReasonCode.INVARIANT_VIOLATION for v in longer_candidate.violations
        ):
            box[key] = cut_text
            candidate = read(reading.value)
            if candidate.value is not None:
                return candidate, reading.cut
        del box[key]
    return read(reading.value), None


def _failed(
    reason: ReasonCode, end_reason: ReasonCode | None, best_candidate: Candidate[T] | None
) -> ParseResult[T]:
    if best_candidate is None:
        return ParseResult(None, Stage.FAILURE, end_reason or reason)
    return ParseResult(
        None,
        Stage.FAILURE,
        end_reason or reason,
        best_candidate.violations,
        schema_version=best_candidate.version,
    )


@attrs.define(eq=False)
class _Found(Generic[T]):
    """The reading of one region.

    Attributes:
        text: its text.
        stage: how it was read.
        candidate: the value, or what is wrong.
        data: the decoded JSON, or :data:`NO_JSON` if it cannot be read.
        sorted_json: its JSON, to find equal ones. Empty without a value.
        has_comments: whether there are comments in it.
        is_closed_early: whether a bracket was missing in it.
    """

    text: str
    stage: Stage
    candidate: Candidate[T]
    data: Any = NO_JSON
    sorted_json: bytes = b""
    has_comments: bool = False
    is_closed_early: bool = False

    def keys(self) -> frozenset[str]:
        """Its folded keys, also if it cannot be read."""
        return member_keys(self.text) if self.data is NO_JSON else _keys(self.data)


class _Search(Generic[T]):
    """The stages after the first, for one text."""

    def __init__(
        self,
        read: Read[T],
        text: str,
        end_reason: ReasonCode | None,
        partial: Partial,
        best_candidate: Candidate[T] | None,
        schema: _Schema | None,
        prose: Prose,
        is_stream: bool,
    ) -> None:
        self._read = read
        self._prose = prose
        self._is_stream = is_stream
        self._schema = schema
        self._names = frozenset() if schema is None else schema.names
        self._telling_names = frozenset() if schema is None else schema.telling_names
        self._is_exact = schema is not None and schema.has_decimal
        self._partial = partial
        self._best_candidate = best_candidate
        self._seen: dict[str, _Found[T]] = {}
        text_scan = scan(text)
        self._scan = (None if text_scan.regions else text_scan.soft_answer()) or text_scan
        self._text = self._scan.text
        self._end_reason = end_reason or (ReasonCode.TRUNCATED if text_scan.is_thinking else None)

    def run(self, lap: Callable[[str], None] | None) -> ParseResult[T]:
        if self._end_reason is not None and self._partial is Partial.REFUSE:
            return ParseResult(None, Stage.FAILURE, self._end_reason)
        regions = list(self._scan.regions)
        cut_region = regions.pop() if regions and not regions[-1].is_closed else None
        whole_readings = [self._whole(region) for region in regions]
        if lap is not None:
            lap("extract")
        readings = [
            each or self._mended(region) for each, region in zip(whole_readings, regions, strict=True)
        ]
        candidates = [each.candidate for each in readings]
        self._best_candidate = max(
            [self._best_candidate, *candidates] if self._best_candidate else candidates,
            key=_closeness,
            default=None,
        )
        if lap is not None and (cut_region is not None or None in whole_readings):
            lap("repair")
        valid_indexes = [at for at, each in enumerate(readings) if each.sorted_json]
        # One that breaks off may be the one that counts, unless it is a bracket of prose.
        if cut_region is not None and (
            not valid_indexes or cut_region.is_fenced or self._is_begun(cut_region)
        ):
            return self._cut_off(cut_region)
        if self._scan.awaits_answer:
            return self._failure(ReasonCode.TRUNCATED)
        if not readings and (word_result := self._word()) is not None:
            return word_result
        if not valid_indexes:
            failed_result = self._failure(
                reason_of(self._best_candidate.violations)
                if self._best_candidate
                else ReasonCode.EXTRACTION_FAILED
            )
            if self._is_stream and len(readings) == 1 and self._counts(regions[0], readings[0]):
                failed_result = _with_fields(failed_result, readings[0].data, self._schema)
            return failed_result
        region, last_reading = regions[valid_indexes[-1]], readings[valid_indexes[-1]]
        problem = self._problem_around(valid_indexes[-1], regions, readings)
        if problem is not None and problem is not ReasonCode.AMBIGUOUS:
            return self._failure(problem, keep=problem is ReasonCode.TRUNCATED)
        equal_indexes: list[int] = []
        other_indexes: list[int] = []
        for each in valid_indexes:
            (equal_indexes if _is_same(readings[each], last_reading) else other_indexes).append(each)
        choice = (
            _choice(self._text, [regions[each] for each in other_indexes], region) if other_indexes else None
        )
        may_be_answer = any(self._counts(regions[at], readings[at]) for at in equal_indexes)
        if (other_indexes and (choice is None or not may_be_answer)) or problem is not None:
            value_by_json = {readings[at].sorted_json: readings[at].candidate.value for at in valid_indexes}
            values = tuple(value for value in value_by_json.values() if value is not None)
            return ParseResult(
                None, Stage.FAILURE, self._end_reason or ReasonCode.AMBIGUOUS, candidates=values
            )
        before, after = self._scan.prose(end=region.start), self._scan.prose(region.end)
        ticks = before[len(before.rstrip("`")) :]  # of code in one line
        ticks = ticks if after.startswith(ticks) else ""
        has_prose = before.removesuffix(ticks) or after.removeprefix(ticks) or last_reading.has_comments
        if has_prose and self._prose is Prose.REFUSE:
            return attrs.evolve(self._failure(ReasonCode.PROSE, keep=False), before=before, after=after)
        if not may_be_answer:
            return _failed(ReasonCode.EXTRACTION_FAILED, self._end_reason, _NOT_ALONE_CANDIDATE)
        first_reading = readings[equal_indexes[0]]
        result = _given(first_reading.stage, first_reading.candidate, self._end_reason, choice)
        result = _with_fields(result, last_reading.data, self._schema)
        return attrs.evolve(result, before=before, after=after)

    def _counts(self, region: Region, found: _Found[T]) -> bool:
        """Whether *found* may be the answer: it is an object with a key of a class that needs one, or its place shows it.

        Other brackets, whatever is in them, are common in prose and programs. Empty pairs say so little that they must
        stand alone, and integers where others numbers are wanted must begin their line: prose cites ``Sources: [1, 2]``.
        """
        if _has_key(found.data, self._telling_names):
            return True
        place = self._scan.place(region)
        if place is not RegionPlace.LINE:
            return place is RegionPlace.ALONE
        line_start = self._text.rfind("\n", 0, region.start) + 1
        return not _is_empty(found.data) and not (
            _is_citation(found) and self._scan.prose(line_start, region.start)
        )

    def _is_begun(self, cut: Region) -> bool:
        """Whether *cut* may be an object, and no list of prose nor the end of ``:-{``."""
        return cut.text[:1] in ("{", "\uff5b") and not _EMOTICON_BEFORE.search(
            self._text, max(cut.start - 3, 0), cut.start
        )

    def _word(self) -> ParseResult[T] | None:
        """The value where the text is one scalar, or one word of an enumeration."""
        if not isinstance(self._schema, Schema) or self._schema.is_object or self._best_candidate is not None:
            return None
        text = _CODE.sub(r"\2", self._scan.prose())
        data = loads(text, is_exact=self._is_exact)
        candidate = self._read(text if data is NO_JSON and self._schema.is_enum else data)
        return None if candidate.value is None else _given(Stage.EXTRACT, candidate, self._end_reason)

    def _problem_around(self, at: int, regions: list[Region], readings: list[_Found[T]]) -> ReasonCode | None:
        """Return the structural objection of the text around region *at*, or ``AMBIGUOUS`` if the text may correct it."""
        last_reading, start, end = readings[at], regions[at].start, regions[at].end
        remainder, kind = self._scan.follower(regions[at])
        is_json_in_string = self._text[start : start + 1] == '"'
        if not is_json_in_string and continues(self._text, start, end, remainder, kind is RegionKind.REGION):
            return ReasonCode.CLOSED_TOO_EARLY
        if last_reading.is_closed_early and readings[at + 1 :]:
            return ReasonCode.CLOSED_TOO_EARLY
        if last_reading.candidate.unknown and remainder.lstrip().startswith("}"):
            return ReasonCode.CLOSED_TOO_EARLY  # the unknown keys belong to an object inside of it
        if self._text[start] == "[" and _LIST_BEFORE.search(self._text, max(start - 80, 0), start):
            return ReasonCode.REPAIR_FAILED
        if at and not (readings[at - 1].sorted_json and _is_same(readings[at - 1], last_reading)):
            tail, next_kind = self._scan.follower(regions[at - 1])
            if (
                next_kind is RegionKind.REGION and tail.strip() == ","
            ):  # items of a list that lost its brackets
                return ReasonCode.AMBIGUOUS
        if is_elided(self._text, end):
            return ReasonCode.TRUNCATED
        # An object or member after it that has a key of the schema may be its correction, or a part of it.
        own_keys = last_reading.keys()
        keys, absent_keys = own_keys | self._names, self._names - own_keys
        if (
            any(each.keys() & keys for each in readings[at + 1 :])
            or any(_is_named(self._text, each) for each in regions[at + 1 :])  # it cannot be read
            or any(each.keys() & absent_keys for each in readings if not each.sorted_json)
            or keys & member_keys(self._scan.prose(end, bare=True))
            or absent_keys & member_keys(self._scan.prose(end=start, bare=True))
            or is_among_own_keys(self._text, start, end, keys)
            or is_operand(self._text, end)
            or (
                self._text[start] in "[\uff3b"
                and self._is_followed(remainder, kind)
                and self._counts(regions[at], last_reading)
            )
        ):
            return ReasonCode.AMBIGUOUS
        return None

    def _is_followed(self, remainder: str, kind: RegionKind | None) -> bool:
        """Whether more follows on the line of a list than blanks, closing marks, or the end of a sentence."""
        line, is_ended, _ = remainder.partition("\n")
        if not line.strip():
            return kind is RegionKind.REGION and not is_ended
        return _LIST_END.match(line) is None

    def _failure(self, reason: ReasonCode, *, keep: bool = True) -> ParseResult[T]:
        return _failed(reason, self._end_reason, self._best_candidate if keep else None)

    # ------------------------------------------------------------------------------------- one region

    def _whole(self, region: Region) -> _Found[T] | None:
        """Return the reading of *region* if it is JSON without repair."""
        if (known_reading := self._seen.get(region.text)) is not None:
            return known_reading  # a model that is caught in a loop writes many
        data = NO_JSON if _NOT_JSON_START.match(region.text) else loads(region.text, is_exact=self._is_exact)
        return None if data is NO_JSON else self._found(region.text, Stage.EXTRACT, data)

    def _mended(self, region: Region) -> _Found[T]:
        if (known_reading := self._seen.get(region.text)) is not None:
            return known_reading
        try:
            reading = self._read_malformed(region.text)
        except UnreadableError as error:
            return self._store(_Found(region.text, Stage.FAILURE, Candidate(None, (error.violation,))))
        if reading.is_closed_early and _CONTINUATION.match(self._text, region.end):
            violation = Violation("a bracket is missing", code=ReasonCode.REPAIR_FAILED)
            return _Found(region.text, Stage.FAILURE, Candidate(None, (violation,)))
        found = self._found(region.text, Stage.REPAIR, reading.value)
        found.has_comments, found.is_closed_early = reading.has_comments, reading.is_closed_early
        defaulted = found.candidate.defaulted
        if found.sorted_json and any(defaulted.get(each, True) for each in reading.gaps):
            violation = Violation("something is left out", code=ReasonCode.TRUNCATED)
            found.candidate, found.sorted_json = Candidate(None, (violation,)), b""
        if reading.is_closed_early:
            del self._seen[region.text]  # its reading depends on the text after it
        return found

    def _read_malformed(self, text: str) -> Reading:
        try:
            return read_json(text, is_exact=self._is_exact)
        except UnreadableError as error:
            if error.violation.code is ReasonCode.REPAIR_FAILED and '"' in text:
                with contextlib.suppress(UnreadableError):
                    return read_json(text, inner_quotes=True, is_exact=self._is_exact)
            raise

    def _found(self, text: str, stage: Stage, data: Any) -> _Found[T]:
        candidate = self._read(data)
        sorted_json = (
            b"" if candidate.value is None else dump_json(data, default=_digits, option=_SORT_KEYS_OPTION)
        )
        return self._store(_Found(text, stage, candidate, data, sorted_json))

    def _store(self, result: _Found[T]) -> _Found[T]:
        self._seen[result.text] = result
        return result

    # ------------------------------------------------------------------------------------ the cut region

    def _cut_off(self, cut_region: Region) -> ParseResult[T]:
        """Return the reading of the region that never ends."""
        end_reason = self._end_reason or ReasonCode.TRUNCATED
        is_balanced = all(
            cut_region.text.count(pair[0]) == cut_region.text.count(pair[1]) for pair in ("{}", "[]")
        )
        if cut_region.is_in_string and is_balanced:  # a quote is missing somewhere, and nothing else
            failed_result = self._failure(self._end_reason or ReasonCode.REPAIR_FAILED)
        else:
            failed_result = _failed(end_reason, end_reason, self._best_candidate)
        is_closed = cut_region.text.endswith(("}", "]"))
        if self._partial is Partial.REFUSE and not is_closed:
            return failed_result
        try:
            reading = read_json(cut_region.text, is_cut=True, is_exact=self._is_exact)
        except UnreadableError as error:
            if not is_closed or error.position < len(cut_region.text) - 1 or self._end_reason is not None:
                return failed_result
            # It ends with a bracket of the wrong kind, and was not cut.
            return _failed(error.violation.code, None, Candidate(None, (error.violation,)))
        if self._partial is Partial.REFUSE:
            return failed_result
        if self._partial is Partial.CLOSE and not reading.is_between:
            return failed_result
        may_be_answer = self._counts(
            cut_region, _Found(cut_region.text, Stage.REPAIR, Candidate(None), reading.value)
        )
        if may_be_answer or not reading.value:
            failed_result = _with_fields(failed_result, reading.value, self._schema, reading.open_path)
        if not may_be_answer:
            return failed_result
        partial_result = _given_so_far(self._read, reading, failed_result, is_stream=self._is_stream)
        return (
            failed_result
            if partial_result.value is None
            else attrs.evolve(
                partial_result, reason=end_reason, before=self._scan.prose(end=cut_region.start)
            )
        )


# ---------------------------------------------------------------------------------------------- rules

_CODE: Final = re.compile(r"\A(`{1,2})([^`\n]++)\1\Z")
"""One word as Markdown writes code."""
_SORT_KEYS_OPTION: Final = 32  # orjson.OPT_SORT_KEYS
_NOT_JSON_START: Final = re.compile(r"[\[{]\s*+[^\s\]}\"{\[\dtfn-]")
"""The beginnings of text that is certainly not JSON."""
_LIST_END: Final = re.compile(rf"{SPACE}*+[\]}})>`*_.;,{QUOTES}\u3002\uff1b\uff0c]")
_CONTINUATION: Final = re.compile(rf"\w|{SPACE}*+[,\[\]{{}}]")
_LIST_BEFORE: Final = re.compile(r"[\[{][ \t]*+[-+.\d][ \t\d.,+-]*\Z")
_EMOTICON_BEFORE: Final = re.compile(r"[ (][:;]-?\Z")


def _digits(number: Any) -> str:
    """An :class:`ExactFloat`, which orjson does not write."""
    return str(number.text)


def _keys(data: Any) -> frozenset[str]:
    """The keys of an object, of the one that it wraps, or of those in a list, as :func:`folded_key` writes them."""
    if type(data) is dict:
        return frozenset(map(folded_key, data)).union(*(map(_keys, data.values()) if len(data) == 1 else ()))
    return frozenset[str]().union(*map(_keys, data)) if type(data) is list else frozenset()


def _has_key(data: Any, names: frozenset[str]) -> bool:
    """Whether *data* is an object with one of the keys *names*, as :func:`folded_key` writes them."""
    return type(data) is dict and bool(names) and any(folded_key(key) in names for key in data)


def _is_empty(data: Any) -> bool:
    """Whether *data* is an empty object, or a list of nothing else, at any depth."""
    return all(map(_is_empty, data)) if type(data) is list else data == {}


def _is_citation(found: _Found[Any]) -> bool:
    """Whether a list has integers alone where the schema wants numbers with a fraction."""
    items = found.candidate.value
    return (
        type(found.data) is list
        and all(type(each) is int for each in found.data)
        and isinstance(items, list | tuple | set | frozenset)
        and all(type(each) is float for each in items)
    )


_NOT_ALONE_CANDIDATE: Final[Candidate[Any]] = Candidate(
    None, (Violation("brackets among other text are not an answer", code=ReasonCode.EXTRACTION_FAILED),)
)


def _closeness(candidate: Candidate[Any]) -> int:
    """Return how close *candidate* came: 3 a value, 2 right but for invariants, 1 an object, 0 something else."""
    if candidate.value is not None:
        return 3
    if all(violation.code is ReasonCode.INVARIANT_VIOLATION for violation in candidate.violations):
        return 2
    first_violation = candidate.violations[0]
    return int(first_violation.path != "$" or first_violation.code is not ReasonCode.SCHEMA_TYPE_ERROR)


def _is_same(one: _Found[T], other: _Found[T]) -> bool:
    """Return whether two regions give the same value, though one may write a null that the other omits."""
    if one.sorted_json == other.sorted_json:
        return True
    a, b = one.candidate.value, other.candidate.value
    try:
        return type(a) is type(b) and bool(a == b) and repr(a) == repr(b)
    except Exception:  # a class of the user may define equality in any way
        return False


def _choice(text: str, other_regions: list[Region], last_region: Region) -> Choice | None:
    """Return the rule by which *last_region* counts, and none of the *other_regions* before it, or ``None`` without one."""
    if _is_named(text, last_region) and not any(_is_named(text, each) for each in other_regions):
        return Choice.LABELLED
    if not last_region.is_fenced:
        return None
    fences = position = 0
    for each in other_regions:
        fences += text.count("```", position, each.start) + text.count("~~~", position, each.start)
        position = each.start
        if fences % 2:
            return None
    return Choice.FENCED


def _is_named(text: str, region: Region) -> bool:
    """Return whether a tag around *region*, or a heading right above it, marks it as the answer."""
    if region.tag in ANSWER_NAMES:
        return True
    heading = HEADING.search(text, max(region.start - 120, 0), region.start)
    name = (heading[1] or heading[2]) if heading else ""
    return name.strip().lower().replace(" ", "_") in ANSWER_NAMES

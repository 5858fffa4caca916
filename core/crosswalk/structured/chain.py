"""The chain: the whole text, JSON in the text, mended JSON, failure with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from crosswalk.structured.decode import NO_JSON, TOO_DEEP, loads
from crosswalk.structured.reader import SPACE, Reading, UnreadableError, decode_string, read_json
from crosswalk.structured.reason import Choice, Partial, ReasonCode, Stage, as_partial
from crosswalk.structured.reasoning import without_reasoning
from crosswalk.structured.result import Candidate, ParseResult, Violation, direct_success
from crosswalk.structured.scan import Region, find_regions
from crosswalk.structured.schema import Schema, reason_of
from crosswalk.structured.versions import SchemaVersions
from crosswalk.structured.wording import (
    is_among_own_keys,
    is_awaited,
    is_called_draft,
    is_called_final,
    is_left_out,
    is_rejected,
    says_again,
    says_another_value,
)
from crosswalk.types.json import dump_json

__all__ = ["extract_json", "repair_json"]

T = TypeVar("T")

Read: TypeAlias = Callable[[Any], Candidate[T]]
"""Makes a candidate of decoded JSON; never raises."""

_TOO_DEEP: Final = (None, (Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED),), None)


def candidate_of(read: Read[T], data: Any) -> Candidate[T]:
    """What *read* makes of *data*, which :func:`loads` gave; never raises."""
    return _TOO_DEEP if data is TOO_DEEP else read(data)


def extract_json(text: str) -> str | None:
    """The first object or array in *text* that is whole and valid JSON, else the first that has an end.

    Reasoning is left out. Fenced blocks of any label come before what stands in prose; what stands inside another
    object, or inside a string, is not looked at.

    Returns:
        The part of the text as it stands; ``None`` where there is none.
    """
    regions = [region for region in find_regions(_answer_in(text)[0]) if region.is_closed]
    regions.sort(key=lambda region: not region.is_fenced)
    whole = (region.text for region in regions if loads(region.text) is not NO_JSON)
    return next(whole, regions[0].text if regions else None)


def repair_json(broken_json: str) -> str | None:
    """Mend the structure of malformed JSON: what it says stays as it stands.

    What it leaves open is closed where it ends after a comma or a bracket, so that nothing in it can have been cut.

    Returns:
        JSON; ``None`` where it cannot be mended, or more is missing than brackets.
    """
    text = broken_json.strip()
    if text[-1:] not in ("}", "]", ","):
        return None
    for is_cut in (False, True):
        try:
            reading = read_json(text, is_cut=is_cut)
        except UnreadableError:
            continue
        return None if reading.cut else dump_json(reading.value).decode()
    return None


def run_chain(
    read: Read[T],
    text: str,
    ended: ReasonCode | None,
    partial: Partial,
    lap: Callable[[str], None] | None = None,
    schema: Schema[Any] | SchemaVersions[Any] | None = None,
) -> ParseResult[T]:
    """Try one stage after the other.

    Args:
        read: makes a value of decoded JSON.
        text: what the model wrote.
        ended: why the text is not a whole answer; ``None`` where it is, or where nobody knows.
        partial: what to do with an answer that ends in the middle.
        lap: called with ``parse``, ``extract`` and ``repair`` when each has been tried; ``None`` for nobody.
        schema: that of *read*, so that malformed JSON without a required key need not be mended; ``None`` for none.

    Raises:
        ConfigurationError: *partial* is none.
    """
    if type(partial) is not Partial:
        partial = as_partial(partial)
    if ended is not None and partial is Partial.REFUSE:
        return ParseResult(None, Stage.FAILURE, ended)
    data = loads(text)
    best = None
    if data is not NO_JSON:
        best = read(data) if data is not TOO_DEEP else _TOO_DEEP
    if lap is not None:
        lap("parse")
    if best is not None:
        value, _, version = best
        if value is not None and ended is None:  # nearly every answer, which ought to cost nothing more
            return direct_success(value, version)
        if value is not None:
            return _given(Stage.DIRECT, best, ended)
        if type(data) is not str:  # valid JSON: nothing to extract, nothing to repair
            return _failed(reason_of(best[1]), ended, best)
        text = data  # JSON in a string of JSON
    return _Search(read, text, ended, partial, best, schema).run(lap)


def _given(
    stage: Stage, candidate: Candidate[T], ended: ReasonCode | None, choice: Choice | None = None
) -> ParseResult[T]:
    value, _, version = candidate
    reason = ended or ReasonCode.SUCCESS
    return ParseResult(value, stage, reason, (), ended is not None, version, choice)


def _failed(reason: ReasonCode, ended: ReasonCode | None, best: Candidate[T] | None) -> ParseResult[T]:
    if best is None:
        return ParseResult(None, Stage.FAILURE, ended or reason)
    return ParseResult(None, Stage.FAILURE, ended or reason, best[1], False, best[2])


@attrs.define(eq=False)
class _Found(Generic[T]):
    """What one region says.

    Attributes:
        region: where it stands.
        stage: how it was read.
        candidate: the value, or what is wrong.
        keys: those of the object; of one that cannot be read, as far as it was.
        said: the JSON of it, to tell what is the same; empty where there is no value.
    """

    region: Region
    stage: Stage
    candidate: Candidate[T]
    keys: frozenset[str]
    said: bytes = b""


class _Search(Generic[T]):
    """The stages after the first, for one text."""

    def __init__(
        self,
        read: Read[T],
        text: str,
        ended: ReasonCode | None,
        partial: Partial,
        best: Candidate[T] | None,
        schema: Schema[Any] | SchemaVersions[Any] | None,
    ) -> None:
        self._read = read
        self._schema = schema
        self._partial = partial
        self._best = best
        self._seen: dict[str, _Found[T]] = {}
        self._closeness = 0 if best is None else _closeness(best)
        self._text, is_thinking = _answer_in(text)
        self._ended = ended or (ReasonCode.TRUNCATED if is_thinking else None)

    def run(self, lap: Callable[[str], None] | None) -> ParseResult[T]:
        if self._ended is not None and self._partial is Partial.REFUSE:
            return ParseResult(None, Stage.FAILURE, self._ended)
        regions = find_regions(self._text)
        cut = regions.pop() if regions and not regions[-1].is_closed else None
        whole = [self._again(region) or self._whole(region) for region in regions]
        if lap is not None:
            lap("extract")
        found = self._all(regions, whole)
        if lap is not None and (cut is not None or None in whole):
            lap("repair")
        valid = [each for each in found if each.said]
        # One that breaks off may be the one that counts, unless it is a bracket of prose.
        if cut is not None and (not valid or cut.is_fenced or cut.text.startswith("{")):
            return self._cut_off(cut)
        awaits_another = is_awaited(self._text, found[-1].region.end if found else 0)
        if not valid:
            if awaits_another and not found:
                return _failed(ReasonCode.TRUNCATED, self._ended, self._best)
            reason = reason_of(self._best[1]) if self._best else ReasonCode.EXTRACTION_FAILED
            return _failed(reason, self._ended, self._best)
        last = valid[-1]
        start, end = last.region.start, last.region.end
        others = [each for each in valid if each.said != last.said]
        choice = _choice(self._text, others, last.region) if others else None
        if awaits_another or is_left_out(self._text, end):
            return _failed(ReasonCode.TRUNCATED, self._ended, self._best)
        # What follows, is meant for the same and says nothing valid may be the correction of it.
        after = found[found.index(last) + 1 :]
        is_corrected = (
            any(each.keys & last.keys for each in after)
            or (not any(each.keys for each in after) and says_again(last.keys, self._text[end:]))
            or is_among_own_keys(self._text, start, end, last.keys)
            or (bool(last.keys) and says_another_value(self._text[end:], loads(last.said.decode())))
            or is_rejected(self._text, start, end)
        )
        if (others and choice is None) or is_corrected:
            different = {each.said: each.candidate[0] for each in valid}
            values = tuple(value for value in different.values() if value is not None)
            reason = self._ended or ReasonCode.AMBIGUOUS
            return ParseResult(None, Stage.FAILURE, reason, candidates=values)
        first = next(each for each in valid if each.said == last.said)
        return _given(first.stage, first.candidate, self._ended, choice)

    # ------------------------------------------------------------------------------------- one region

    def _all(self, regions: list[Region], whole: list[_Found[T] | None]) -> list[_Found[T]]:
        """What each of *regions* says, mended where it is not among the *whole*; without those that change nothing."""
        found: list[_Found[T]] = []
        required = frozenset() if self._schema is None else self._schema.required_fields
        is_valid = False
        for each, region in zip(whole, regions, strict=True):
            if each is None and required and self._closeness and not is_valid:
                # What lacks a required key is no value, comes no closer, and corrects nothing.
                text = region.text
                if "\\" not in text and not all(key in text for key in required):
                    continue
            each = each or self._again(region) or self._mended(region)
            self._consider(each.candidate)
            is_valid = is_valid or bool(each.said)
            found.append(each)
        return found

    def _again(self, region: Region) -> _Found[T] | None:
        """What *region* says where one with the same text has been read: a model that is caught in a loop writes many."""
        seen = self._seen.get(region.text)
        return seen and _Found(region, seen.stage, seen.candidate, seen.keys, seen.said)

    def _whole(self, region: Region) -> _Found[T] | None:
        """What *region* says where it is JSON as it stands."""
        data = NO_JSON if _NO_JSON.match(region.text) else loads(region.text)
        if data is NO_JSON:
            return None
        return self._found(region, Stage.EXTRACT, data)

    def _mended(self, region: Region) -> _Found[T]:
        try:
            reading = read_json(region.text)
            if reading.is_closed_early and _GOES_ON.match(self._text, region.end):
                violation = Violation("a bracket is missing", code=ReasonCode.REPAIR_FAILED)
                raise UnreadableError(violation, _keys(reading.value))
        except UnreadableError as error:
            return _Found(region, Stage.FAILURE, (None, (error.violation,), None), error.keys)
        found = self._found(region, Stage.REPAIR, reading.value)
        if reading.is_closed_early:
            del self._seen[region.text]  # what it says depends on what stands behind it
        return found

    def _found(self, region: Region, stage: Stage, data: Any) -> _Found[T]:
        candidate = candidate_of(self._read, data)
        said = b"" if candidate[0] is None else dump_json(data, option=_SORTED)
        found = _Found(region, stage, candidate, _keys(data), said)
        self._seen[region.text] = found
        return found

    def _consider(self, candidate: Candidate[T]) -> None:
        closeness = _closeness(candidate)
        if self._best is None or closeness > self._closeness:
            self._best, self._closeness = candidate, closeness

    # ------------------------------------------------------------------------------------ the cut region

    def _cut_off(self, cut: Region) -> ParseResult[T]:
        """What the region that never ends gives."""
        ended = self._ended or ReasonCode.TRUNCATED
        if self._partial is Partial.ACCEPT or (self._partial is Partial.CLOSE and cut.is_between):
            try:
                reading = read_json(cut.text, is_cut=True)
                given, goes_on = self._partially(reading)
                if given[0] is not None:
                    return attrs.evolve(_given(Stage.REPAIR, given, ended), cut=goes_on)
            except UnreadableError:
                pass
        is_balanced = all(cut.text.count(pair[0]) == cut.text.count(pair[1]) for pair in ("{}", "[]"))
        if cut.is_in_string and is_balanced:  # a quote is missing somewhere, and nothing else
            ended = self._ended or ReasonCode.REPAIR_FAILED
        return _failed(ended, ended, self._best)

    def _partially(self, reading: Reading) -> tuple[Candidate[T], str | None]:
        """What is known of a value, and the path of the text in it that may go on; ``None`` where none does.

        A text at the end is kept only where a longer one might stand as well: a word out of a list of words, or a date,
        would be given as if it were whole.
        """
        if reading.cut_in is not None:
            box, key = reading.cut_in
            cut_text = box[key]
            box[key] += "\ufffd"
            longer, violations, _ = self._read(reading.value)
            if longer is not None or all(v.code is ReasonCode.INVARIANT_VIOLATION for v in violations):
                box[key] = cut_text
                candidate = self._read(reading.value)
                if candidate[0] is not None:
                    return candidate, reading.cut
            del box[key]
        return self._read(reading.value), None


# ------------------------------------------------------------------------------------------- the text

_SORTED: Final = 32  # orjson.OPT_SORT_KEYS
_ESCAPED: Final = re.compile(r'[\[{](?:\s|\\[nrt])*+\\"')
_ESCAPED_QUOTE: Final = re.compile(r"[\[{]\s*+&(?:quot|#34|#x22);")
_ENTITIES: Final = {
    "quot": '"', "#34": '"', "#x22": '"', "#39": "'", "#x27": "'", "apos": "'", "lt": "<", "gt": ">", "amp": "&",
}  # fmt: skip
_ENTITY: Final = re.compile(f"&({'|'.join(_ENTITIES)});")
_TEXT_OF_OBJECT: Final = re.compile(r'"([\[{](?:\s|\\[nrt])*+\\"(?:[^"\\]|\\.)*+)"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[{]")
_NO_JSON: Final = re.compile(r"[\[{]\s*+[^\s\]}\"{\[\dtfn-]")
"""What begins so, no parser of JSON has to be asked."""
_GOES_ON: Final = re.compile(rf"\w|{SPACE}*+[,\]}}]")


def _answer_in(text: str) -> tuple[str, bool]:
    """*text* without reasoning, and whether that is never closed; ``{\\"a\\": 1}`` as what it stands for."""
    text, is_thinking = without_reasoning(text)
    if "&" in text and '"' not in text and _ESCAPED_QUOTE.search(text):
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], text)
    quote = text.find('"')
    is_escaped = text[quote - 1 : quote] == "\\"  # to look at the first one takes no time
    if is_escaped and _ESCAPED.search(text) and '"' not in text.replace("\\\\", "").replace('\\"', ""):
        text = decode_string(text) or text
    elif '\\"' in text and _BRACKET.search(_TEXT_OF_OBJECT.sub("", text)) is None:  # as in YAML
        text = _TEXT_OF_OBJECT.sub(lambda quoted: decode_string(quoted[1]) or quoted[0], text)
    return text, is_thinking


def _keys(data: Any) -> frozenset[str]:
    return frozenset(data) if type(data) is dict else frozenset()


def _closeness(candidate: Candidate[Any]) -> int:
    """How close *candidate* came: 3 a value, 2 right but for invariants, 1 an object, 0 something else."""
    value, violations, _ = candidate
    if value is not None:
        return 3
    if all(violation.code is ReasonCode.INVARIANT_VIOLATION for violation in violations):
        return 2
    first = violations[0]
    return int(first.path != "$" or first.code is not ReasonCode.SCHEMA_TYPE_ERROR)


def _choice(text: str, others: list[_Found[T]], last: Region) -> Choice | None:
    """Which rule says that *last* counts, and none of the *others* before it; ``None`` where none does."""
    if is_called_final(text, last.start) and all(is_called_draft(text, each.region.start) for each in others):
        return Choice.LABELLED
    if not last.is_fenced:
        return None
    fences = position = 0
    for each in others:
        fences += text.count("```", position, each.region.start) + text.count(
            "~~~", position, each.region.start
        )
        position = each.region.start
        if fences % 2:
            return None
    return Choice.FENCED

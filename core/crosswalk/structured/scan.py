"""Finds the JSON in a text, and the parts around it: reasoning, fences, tags, prose."""

from __future__ import annotations

import re
from bisect import bisect_left
from enum import Enum, auto
from operator import itemgetter
from typing import Final

import attrs

from crosswalk.structured.repair import QUOTES, SPACE, STRINGS, UnreadableError, decode_string, read_json
from crosswalk.structured.result import ReasonCode

# ----------------------------------------------------------------------------------- marks
# The marks that may surround an answer: fences, tags, reasoning, the channels of OpenAI's Harmony.
#
# They are facts of model families and of markup. They contain no word of prose.


ANSWER_NAMES: Final = frozenset(("answer", "final", "final_answer", "result", "response", "output"))
"""The names of a tag or heading that mark the answer."""
_OTHER_TAGS: Final = r"json|tool_call|function_call|structured_output"
SOFT_NAMES: Final = frozenset(
    ("plan", "planning", "draft", "drafts", "analysis", "reflection", "rationale", "scratchpad", "scratch_pad", "reason",
     "deliberation")
)  # fmt: skip
"""Names of reasoning that a request may also use as the tag of an answer."""

_NAME: Final = (
    r"(?:[a-z]{1,10}[:_]|ant)?think(?:ing)?|thoughts?|reasoning|cot|chain_of_thought|inner_(?:monologue|thoughts?)"
    rf"|(?:think(?:ing)?|thought|reasoning)_(?:process|mode)|{'|'.join(SOFT_NAMES)}"
)
_OPENING: Final = (
    rf"<(?P<name>{_NAME})(?:\s[^<>\n]{{0,99}})?>|\[(?:THINK(?:ING)?|REASONING)\]|\u25c1think\u25b7"
    r"|<\|(?:START_THINKING|begin_of_thought|think(?:ing)?|reasoning)\|>|\A\s*+Here(?: is|'s) my thought process:"
    r"|<unused94>|<start_working_out>|<\|channel>thought\b|<\|im_start\|>think\b"
    r"|\A\s*+(?:assistant)?analysis(?:(?-i:(?<=analysis)(?=[A-Z{\"])(?!\w*\s*[:=]))|(?=(?s:.*)assistantfinal))"
)
_CLOSING: Final = (
    rf"</(?P<closed>{_NAME})\s*>|\[/(?:THINK(?:ING)?|REASONING)\]|\u25c1/think\u25b7"
    r"|<\|(?:END_THINKING|end_of_thought|/think(?:ing)?|/reasoning)\|>|\nHere(?: is|'s) my response:"
    r"|<unused95>|<end_working_out>|<channel\|>|<\|im_start\|>answer\b|assistantfinal"
)
CLOSING: Final = re.compile(_CLOSING, re.IGNORECASE)

_CHANNEL: Final = (
    r"(?:(?:<\|start\|>)?assistant(?P<role_recipient>\s*to=[^<]*+)?)?<\|channel\|>\s*+(?P<channel_name>\w++)(?P<recipient>[^<]*?\bto=[^<]*+)?[^<]*+"
    r"(?:<\|constrain\|>[^<]*+)?<\|message\|>"
)
CHANNEL_END: Final = re.compile(r"<\|(?:end|return|call|start|channel)\|>")

_TOOL: Final = r"(?:tool|function)s?(?:[_\u2581 -]?calls?)?[_\u2581 -]?(?:response|result|output)s?"
_ROLE: Final = r"<\|(?:im_start|start_header_id|start_of_role|start)\|>(?!(?:assistant|think|answer)\b)\w"
_HIDDEN: Final = (
    rf"(?P<tool>(?:<[|\uff5c]?|\[)(?:start_)?{_TOOL}(?:[_\u2581](?:start|begin))?(?:\s[^<>\n]{{0,99}})?(?:[|\uff5c]?>|\]))"
    rf"|(?P<role>{_ROLE})|<(?P<struck_tag>del|s|strike)(?:\s[^<>\n]{{0,99}})?>"
    r"|(?P<struck>(?<!~)~~(?!~))|(?P<comment><!--)"
)


def hidden_end(match: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern that ends the hidden part that *match* begins."""
    return next(end for name, end in _END_PATTERNS.items() if match[name])


_END_PATTERNS: Final = {
    "tool": re.compile(
        rf"(?:<[|\uff5c]?|\[)(?:/{_TOOL}|end_{_TOOL}|{_TOOL}[_\u2581]end)\s*(?:[|\uff5c]?>|\])", re.IGNORECASE
    ),
    "role": re.compile(r"<\|(?:im_end|eot_id|eom_id|end_of_text|end|call|return)\|>"),
    "struck_tag": re.compile(r"</(?:del|s|strike)\s*>", re.IGNORECASE),
    "struck": re.compile(r"(?<!~)~~(?!~)"),
    "comment": re.compile("-->"),
}
_TAG: Final = (
    rf"<(?P<slash>/?)(?P<tag>{'|'.join(sorted(ANSWER_NAMES, key=len, reverse=True))}|{_OTHER_TAGS})(?:\s[^<>\n]{{0,99}})?>"
    r"|(?P<token><\|[\w/ .-]{1,40}\|>(?:(?:(?<=start\|>)|(?<=header_id\|>))assistant\b)?|</s>|<\uff5c[^<>\n]{1,40}\uff5c>"
    r"|<(?:eos|bos|pad|unk|end_of_turn|end_of_utterance)>|<start_of_turn>(?:model\b)?"
    r"|\[\[ ## \w{1,40} ## \]\]|\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS)\])"
)
_OPENED_FENCE: Final = r"(?P<fence>^[ \t>]*+)?+(?P<ticks>`{3,}+|~{3,}+)(?P<label>\{\.\w++\}|[\w+.-]*+)"
_ATTRIBUTES: Final = re.compile(
    r"(?:[ \t]++(?:[\w:-]++(?:=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s\"'{\[]++))?|\{[\d, -]*+\}))++[ \t]*+(?=\n)"
)
"""The rest of the line that opens a fence, such as ``title="a.json" {1-3}``."""

MARK: Final = (
    rf"(?P<channel>{_CHANNEL})|(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})|(?P<hidden>{_HIDDEN})"
    rf"|(?P<mark>{_TAG})|(?P<fence_mark>{_OPENED_FENCE})"
)
"""Any mark. The name of the group that matched last is its kind."""

HEADING: Final = re.compile(
    r"(?:\A|\n)[ \t]*(?:#{1,6}[ \t]*([^\n#*:]{1,40}?)[ \t:#]*|\*\*([^\n*:]{1,40}):?\*\*:?[ \t]*)\n?\s*"
    r"(?:(?:```|~~~)[\w+.-]*\s*)?\Z"
)
"""A Markdown heading, or a line in bold, right before an object."""

# ------------------------------------------------------------------------------- unwrapping a whole text

_ESCAPED: Final = re.compile(r'[\[{](?:\s|\\[nrt])*+\\"')
_ESCAPED_QUOTE: Final = re.compile(r"[\[{]\s*+&(?:quot|#34|#x22);")
_ENTITIES: Final = {
    "quot": '"', "#34": '"', "#x22": '"', "#39": "'", "#x27": "'", "apos": "'", "lt": "<", "gt": ">", "amp": "&",
}  # fmt: skip
_ENTITY: Final = re.compile(f"&({'|'.join(_ENTITIES)});")
_QUOTED_LINES: Final = re.compile(r"(?:^[ \t]*+>[^\n]*+(?:\n|\Z))+", re.MULTILINE)
_QUOTED_JSON: Final = re.compile(r"^[ \t]*+>[ \t]*+(?:```|~~~|[{\[])", re.MULTILINE)
_QUOTE_MARK: Final = re.compile(r"^[ \t]*+> ?", re.MULTILINE)


def unwrapped(text: str) -> str:
    """Return *text* without the marks of a Markdown quote around JSON, and decoded if it was escaped as a whole.

    A text that has unescaped quotes is never decoded.
    """
    if "&" in text and '"' not in text and _ESCAPED_QUOTE.search(text):
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], text)
    quote_position = text.find('"')
    is_escaped = text[quote_position - 1 : quote_position] == "\\"  # to look at the first one takes no time
    if is_escaped and _ESCAPED.search(text) and '"' not in text.replace("\\\\", "").replace('\\"', ""):
        text = decode_string(text) or text
    if ">" in text:
        text = _QUOTED_LINES.sub(_unquoted, text)
    return text


def _unquoted(match: re.Match[str]) -> str:
    # Not within JSON that is not quoted itself: there a line that begins so is part of a text.
    is_around_json = _QUOTED_JSON.search(match[0]) and "{" not in match.string[: match.start()]
    return _QUOTE_MARK.sub("", match[0]) if is_around_json else match[0]


# ------------------------------------------------------------------------------------ scan
# Find the JSON in a text, and the parts around it: reasoning, fences, tags, prose.
#
# Regions and their strings are found first, so a mark inside of a string is text like any other. Every function here
# looks at each character a bounded number of times.


# An object or array as JSON, Python, JavaScript and careless models begin it; not the braces of prose.
_OPENER: Final = (
    rf"[{{\uff5b]{SPACE}*+(?:[{QUOTES}}}\uff5d/#,\u2026]|\.\.|[\w$][\w$-]*+{SPACE}*+:|\Z)"
    rf"|(?<!<!\[CDATA)[\[\uff3b]{SPACE}*+(?:[{QUOTES}{{\[\](\d/#,\u2026-]|\.\.|(?i:true|false|null|None|NaN)\b|\Z)"
)
_NEXT_MARK: Final = re.compile(
    rf"{MARK}|(?P<string>\"(?=[\[{{](?:\s|\\[nrt])*+\\\"))|(?P<opener>{_OPENER})",
    re.IGNORECASE | re.MULTILINE,
)
_STRING_OF_JSON: Final = re.compile(r'"((?:[^"\\]|\\.)*+)("?)', re.DOTALL)
_STRUCTURE: Final = re.compile(rf"[{QUOTES}{{}}\[\]\uff5b\uff5d\uff3b\uff3d,:#]|\n[ \t]*+(?:```|~~~)|//|/\*")
_BLANK: Final = re.compile(rf"{SPACE}*+")
_ANNOUNCEMENT: Final = re.compile(r"(?:[:\uff1a][*_]*|<[A-Za-z]\w*>)\Z")
_INTRODUCTION: Final = re.compile(r"(?:[:\uff1a][*_]*+|(?<![=!<>])=)[ \t]*+\Z")
_ONLY_MARKS: Final = re.compile(rf"(?:{SPACE}|<!\[CDATA\[|\]\]>|[*_{{}}])*+\Z")
"""What may surround the whole text: invisible characters, the marks of bold text and of XML, and doubled braces."""
_ENDS_LINE: Final = re.compile(r"[ \t\r]*+[.;,\u3002\uff1b\uff0c]?[ \t\r]*+\Z")
_SPACE_TO_END: Final = re.compile(r"\s*+\Z")
_LINE: Final = re.compile(r"[^\n]*+")
_COMMENT_PATTERNS: Final = {"//": _LINE, "#": _LINE, "/*": re.compile(r".*?\*/", re.DOTALL)}
_STRING_PATTERNS: Final = {opening: re.compile(string, re.DOTALL) for opening, string in STRINGS.items()}
_FENCE_BEFORE: Final = re.compile(r"(```|~~~)(?:[^\n`]*\n|[\w+.-]*)\s*\Z")
_FENCE_END: Final = re.compile(r"[\s}\])]*+(?:(?:```|~~~)[ \t]*+(?:\n|\Z)|`{1,2}\Z)")
_FENCE_LINE: Final = re.compile(r"\n[ \t]*+(?:```|~~~)")
_HALF_A_FENCE: Final = re.compile(r"\s(?:`{1,2}|~{1,2})\Z")
# An object of strings, numbers and words in which nothing is unusual: most small ones, found in one step.
_STRING_OR_WORD: Final = r"""(?:"[^"\\\n]*+"|'[^'\\\n]*+'|[\w.+-]++)"""
_FLAT_OBJECT: Final = re.compile(rf"\{{(?:\s*+{_STRING_OR_WORD}\s*+[:,])*\s*+(?:{_STRING_OR_WORD}\s*+)?\}}")
_CERTAIN_OPENING: Final = re.compile(
    rf"[{{\uff5b]{SPACE}*+[{QUOTES}][^{QUOTES}\n]*[{QUOTES}]{SPACE}*+[:\uff1a]|[\[\uff3b]{SPACE}*+[{{\uff5b]"
)
"""The beginning of an object with a member, or of a list of objects: not of prose."""
_LONGEST_FENCE: Final = 200
_CLOSERS: Final = {"{": "}", "[": "]"}
_NARROW_MARKS: Final = {"\uff5b": "{", "\uff5d": "}", "\uff3b": "[", "\uff3d": "]"}
_MOST_STRAYS: Final = 16
_MOST_MISSES: Final = 16


class RegionKind(Enum):
    """The kind of a part of a text."""

    REGION = auto()
    PROSE = auto()
    FENCE = auto()
    TAG = auto()
    REASONING = auto()
    HIDDEN = auto()
    """The output of a tool, a comment, or struck text. It counts as prose."""


class RegionPlace(Enum):
    """The place of a region in the text."""

    ALONE = auto()
    """The whole text, the first thing in a fence, or all that stands between two tags or other marks."""
    LINE = auto()
    """It begins its line, or stands behind ``:`` or ``=``, and it ends its line. One ``.``, ``;`` or ``,`` may follow."""
    SENTENCE = auto()
    """Anywhere else."""


_MARK_KINDS: Final = (
    RegionKind.FENCE,
    RegionKind.TAG,
    RegionKind.REASONING,
    None,
)  # None: the beginning or end of the text


@attrs.define
class Region:
    """A part of a text that looks like one JSON object or array.

    Attributes:
        text: the JSON, from its opening bracket on. Empty for a fence that is opened and holds nothing yet.
        start: its beginning in the text, the quotes of a JSON string around it included.
        end: its end in the text.
        is_closed: whether its end is there. Else it reaches to the end of the text.
        is_fenced: whether it is the first thing in a fenced block.
        tag: the name of the answer tag around it, or empty for none.
        is_in_string: whether it is not closed, and ends in a string.
    """

    text: str
    start: int
    end: int
    is_closed: bool
    is_fenced: bool
    tag: str = ""
    is_in_string: bool = False


def scan(text: str) -> Scan:
    """Take *text* apart. Only the last region can be open. Regions do not overlap.

    A bracket or quote of prose that nothing closes before the next fence does not hide the fence. Without a region
    in that fence, the answer breaks off at the fence.
    """
    text = unwrapped(text)
    result = Scan(text, fences_end_prose=True)
    if result.strays and (result.strays > _MOST_STRAYS or not any(r.is_fenced for r in result.regions)):
        result = Scan(text, fences_end_prose=False)
    return result


class Scan:
    """A text and its parts.

    Attributes:
        text: the text. A Markdown quote, or a text that was escaped as a whole, is unwrapped.
        regions: the regions outside of reasoning, tool results, comments and struck text.
        is_thinking: whether reasoning is never closed, so that nothing of an answer has come.
        awaits_answer: whether the text ends before an expected answer: behind a colon, or behind a tag that opens.
        strays: the number of openers of prose that were ignored because the next fence begins inside of them.
    """

    def __init__(self, text: str, *, fences_end_prose: bool, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.regions: list[Region] = []
        self.is_thinking = False
        self.awaits_answer = False
        self.strays = 0
        self._spans: list[tuple[int, int, RegionKind]] = []  # all that is not prose, in order
        self._fences: list[tuple[str, int]] = []  # the marks of those that are open, and where
        self._fence_is_end = False
        self._tag_name = ""  # the answer tag that is open, and how many regions there were before it
        self._tag_region_index = 0
        self._soft_spans: list[tuple[str, int, int]] = []  # reasoning under a name that an answer may have
        self._channel = ""
        self._start, self._end = start, len(text) if end is None else end
        self._fences_end_prose = fences_end_prose
        self._abandoned_region: Region | None = None
        self._unclosed_count = 0
        self._string_count = 0
        self._walk()

    # ---------------------------------------------------------------------------- what stands around

    def prose(self, start: int = 0, end: int | None = None, *, bare: bool = False) -> str:
        """The text from *start* to *end* without reasoning, fences and tags.

        With *bare*, also without what is hidden and without objects.
        """
        end = self._end if end is None else end
        parts, position = [], max(start, self._start)
        for begin, stop, kind in self._spans:
            if begin >= end:
                break
            is_text = (kind is RegionKind.REGION and not (bare and self.text[begin] not in "[\uff3b")) or (
                kind is RegionKind.HIDDEN and not bare
            )
            if stop > position and not is_text:
                parts.append(self.text[position : max(begin, position)])
                position = stop
        parts.append(self.text[position : max(end, position)])
        return "".join(parts).strip()

    def follower(self, region: Region) -> tuple[str, RegionKind | None]:
        """The prose right behind *region* up to the next other part, and the kind of that part."""
        index = bisect_left(self._spans, region.end, key=itemgetter(0))
        begin, _, kind = self._spans[index] if index < len(self._spans) else (self._end, self._end, None)
        return self.text[region.end : begin], kind

    def place(self, region: Region) -> RegionPlace:
        """The place of *region*. Ticks of code around it do not matter."""
        index = bisect_left(self._spans, region.start, key=itemgetter(0))
        _, begin, kind = self._spans[index - 1] if index else (0, self._start, None)
        text_before, (text_after, next_kind) = self.text[begin : region.start], self.follower(region)
        ticks = text_before[len(text_before.rstrip("`")) :]
        if text_after.startswith(ticks):
            text_before, text_after = text_before[: len(text_before) - len(ticks)], text_after[len(ticks) :]
        is_parted = kind in _MARK_KINDS and next_kind in _MARK_KINDS
        if region.is_fenced or (
            is_parted and _ONLY_MARKS.match(text_before) and _ONLY_MARKS.match(text_after)
        ):
            return RegionPlace.ALONE
        line_parts = (
            text_before.rpartition("\n")
            if kind not in _MARK_KINDS
            else ("", "\n", text_before.rpartition("\n")[2])
        )
        is_at_line_start = (line_parts[1] and not line_parts[2].strip()) or _INTRODUCTION.search(text_before)
        rest, is_ended, _ = text_after.partition("\n")
        is_at_line_end = _ENDS_LINE.match(rest) and (is_ended or next_kind in _MARK_KINDS)
        return RegionPlace.LINE if is_at_line_start and is_at_line_end else RegionPlace.SENTENCE

    def soft_answer(self) -> Scan | None:
        """Return the last block of reasoning under a name that an answer may have, if it contains nothing but one object."""
        if not self._soft_spans or self.is_thinking or self.awaits_answer or self.prose():
            return None
        name, start, end = self._soft_spans[-1]
        inner_scan = Scan(self.text, fences_end_prose=True, start=start, end=end)
        if len(inner_scan.regions) != 1 or not inner_scan.regions[0].is_closed:
            return None
        region = inner_scan.regions[0]
        if inner_scan.prose(end=region.start) or inner_scan.prose(region.end):
            return None
        region.tag = name
        return inner_scan

    # ------------------------------------------------------------------------------------- the walk

    def _walk(self) -> None:
        text, position = self.text, self._start
        while match := _NEXT_MARK.search(text, position, self._end):
            start, kind = match.start(), match.lastgroup
            if kind == "opener":
                next_position = self._region(start)
            elif kind == "string":
                next_position = self._string(start)
            elif kind == "fence_mark":
                next_position = self._fence(match)
            elif kind == "opening":
                next_position = self._reasoning(start, match.end(), match["name"] or "")
            elif kind == "closing":
                next_position = self._reasoned(match.end(), match["closed"] or "")
            elif kind == "channel":
                next_position = self._begin_channel(match)
            elif kind == "hidden":
                next_position = self._hide(match)
            else:
                next_position = self._tag(match)
            if next_position is None:
                break
            position = next_position
        else:
            if (
                self._fences[-1][1] >= self._last_region_end()
                if self._fences
                else self._ends_in_half_a_fence()
            ):
                self._add_open_fence()
        if self._abandoned_region is not None and not any(
            r.is_closed and r.start > self._abandoned_region.start for r in self.regions
        ):
            self.regions.append(self._abandoned_region)
        last_end = self._last_region_end()
        self.awaits_answer = _ANNOUNCEMENT.search(self.prose(last_end)) is not None
        if self._tag_name:
            self.awaits_answer = self.awaits_answer or not self.regions[self._tag_region_index :]
            for region in self.regions[self._tag_region_index :]:
                region.tag = ""  # only a closed tag names the answer
        if self._channel == "analysis":
            self.is_thinking = True
        if self._channel:
            final_regions = [region for region in self.regions if region.tag == "final"]
            self.regions = final_regions or self.regions

    def _add(self, start: int, end: int, kind: RegionKind) -> None:
        self._spans.append((start, end, kind))

    def _last_region_end(self) -> int:
        return self.regions[-1].end if self.regions else self._start

    def _ends_in_half_a_fence(self) -> bool:
        return self._end == len(self.text) and (
            _HALF_A_FENCE.search(self.text, max(self._last_region_end(), len(self.text) - 3)) is not None
        )

    def _add_open_fence(self) -> None:
        self.regions.append(Region("", self._end, self._end, is_closed=False, is_fenced=True))

    # ------------------------------------------------------------------------------------- regions

    def _region(self, start: int) -> int | None:
        text_before = self.text[max(self._last_region_end(), start - _LONGEST_FENCE, self._start) : start]
        fence = None if self._fence_is_end else _FENCE_BEFORE.search(text_before)
        is_fenced = fence is not None
        part = _Part(self.text, start, self._end, is_fenced, self._fences_end_prose)
        if part.stray_at is not None:
            self.strays += 1
            return None if self.strays > _MOST_STRAYS else part.stray_at
        region = part.region()
        if not region.is_closed:
            return self._open_region(region)
        self._take(region)
        # A fence that is opened in the request, not in the answer, begins with the JSON itself.
        is_begun = len(self.regions) == 1 and self.text[:start].strip() in ("", "json")
        if not self._fences and (is_fenced or (is_begun and _FENCE_END.match(self.text, region.end))):
            if not is_fenced:
                self._spans[:0] = [(0, start, RegionKind.FENCE)]
            self._fences.append((fence[1] if fence else "```", start))
        return region.end

    def _take(self, region: Region) -> None:
        region.tag = self._channel or (self._tag_name if self._tag_name in ANSWER_NAMES else "")
        self.regions.append(region)
        self._add(region.start, region.end, RegionKind.REGION)
        self._fence_is_end = False

    def _open_region(self, region: Region) -> int | None:
        """A region without an end: the rest of the text. If it begins otherwise than JSON of objects and cannot be read, its
        bracket is prose.
        """
        self._unclosed_count += 1
        if (
            self._unclosed_count <= _MOST_STRAYS
            and not region.is_fenced
            and not _CERTAIN_OPENING.match(region.text)
        ):
            try:
                read_json(region.text, is_cut=True)
            except UnreadableError as error:
                if error.violation.code is ReasonCode.REPAIR_FAILED:
                    self._abandoned_region = self._abandoned_region or region
                    return region.start + max(error.position, 1)
        self._abandoned_region = None
        self.regions.append(region)
        return None

    def _string(self, start: int) -> int:
        """An object in a string of JSON or YAML."""
        self._string_count += 1
        match = (
            _STRING_OF_JSON.match(self.text, start, self._end) if self._string_count <= _MOST_STRAYS else None
        )
        text = decode_string(match[1]) if match else None
        if match is None or text is None:
            return start + 1
        self._string_count -= bool(match[2])
        part = _Part(text, 0, len(text), False, False)
        region = part.region()
        region.start, region.end, region.is_closed = start, match.end(), region.is_closed and bool(match[2])
        if region.is_closed and text[len(region.text) :].strip():
            return start + 1
        self._take(region)
        return region.end

    # ------------------------------------------------------------------------------ marks around them

    def _fence(self, match: re.Match[str]) -> int:
        mark, label = match["ticks"], match["label"]
        is_end = not label and bool(self._fences) and mark.startswith(self._fences[-1][0])
        end = match.end("label")
        if (
            label
            and match["fence"] is not None
            and (attributes := _ATTRIBUTES.match(self.text, end, self._end))
        ):
            end = attributes.end()
        self._fence_is_end = is_end
        if is_end:
            self._fences.pop()
        elif match["fence"] is not None or _SPACE_TO_END.match(self.text, end, self._end):
            self._fences.append(
                (mark, match.start())
            )  # in the middle of a line it begins none, save at the very end
        self._add(match.start(), end, RegionKind.FENCE)
        return end

    def _reasoning(self, start: int, end: int, name: str) -> int | None:
        closing = CLOSING.search(self.text, end, self._end)
        if closing is None:
            self.is_thinking = True
            self._add(start, self._end, RegionKind.REASONING)
            return None
        self._add(start, closing.end(), RegionKind.REASONING)
        if name.lower() in SOFT_NAMES:
            self._soft_spans.append((name.lower(), end, closing.start()))
        return closing.end()

    def _reasoned(self, end: int, name: str) -> int:
        """The end of reasoning that begins in the request: all before it was reasoning."""
        closing_start = self.text.rfind("<", 0, end)
        if name.lower() in SOFT_NAMES:
            self._soft_spans.append((name.lower(), self._start, closing_start))
        self.regions.clear()
        self._fences.clear()
        self._tag_name = ""
        self._abandoned_region = None
        self._spans = [(self._start, end, RegionKind.REASONING)]
        return end

    def _begin_channel(self, match: re.Match[str]) -> int | None:
        """A channel of OpenAI's Harmony format: the answer is in ``final``, or in a call of a tool."""
        name, is_call = match["channel_name"].lower(), bool(match["recipient"] or match["role_recipient"])
        if name == "final" or is_call:
            self._channel = "final" if name == "final" else "call"
            self._add(match.start(), match.end(), RegionKind.TAG)
            return match.end()
        self._channel = self._channel or "analysis"
        end_match = CHANNEL_END.search(self.text, match.end(), self._end)
        next_position = self._end if end_match is None else end_match.start()
        self._add(match.start(), next_position, RegionKind.REASONING)
        return next_position if end_match is not None else None

    def _hide(self, match: re.Match[str]) -> int | None:
        """The output of a tool, a comment or struck text: no answer, whatever it contains."""
        end_match = hidden_end(match).search(self.text, match.end(), self._end)
        if end_match is None:
            return match.end() if match["struck"] else None
        self._add(match.start(), end_match.end(), RegionKind.HIDDEN)
        return end_match.end()

    def _tag(self, match: re.Match[str]) -> int:
        name = (match["tag"] or "").lower()
        if name and not match[0].endswith("/>"):
            self._tag_name, self._tag_region_index = "" if match["slash"] else name, len(self.regions)
        self._add(match.start(), match.end(), RegionKind.TAG)
        return match.end()


class _Part:
    """A region that begins at *start*: its end, and the facts about it.

    A bracket that nothing opened is ignored. One that closes an outer bracket closes the inner ones too. A
    fence that ends before its JSON does ends the JSON: the model forgot to close it, it was not cut.

    Attributes:
        end: its end, or ``None`` if the text ends before it.
        stray_at: the position of a fence that begins inside of it, which no JSON of prose can hold, or ``None``.
    """

    def __init__(self, text: str, start: int, stop: int, is_fenced: bool, fences_end_prose: bool) -> None:
        self._text, self._start, self._stop, self._is_fenced = text, start, stop, is_fenced
        self._may_stray = fences_end_prose and not is_fenced
        self._is_in_string = False
        self.stray_at: int | None = None
        self.end = self._walk()

    def region(self) -> Region:
        """The region itself."""
        end = self._stop if self.end is None else self.end
        return Region(
            self._text[self._start : end],
            self._start,
            end,
            self.end is not None,
            self._is_fenced,
            is_in_string=self._is_in_string,
        )

    def _walk(self) -> int | None:
        text, stop = self._text, self._stop
        if flat_match := _FLAT_OBJECT.match(text, self._start, stop):
            return flat_match.end()
        open_brackets: list[str] = []
        open_counts = {"}": 0, "]": 0}
        position = self._start
        misses = 0  # how many objects in a row were not flat
        value_start = -1  # where a value, or a key, may begin
        while match := _STRUCTURE.search(text, position, stop):
            mark, mark_start = _NARROW_MARKS.get(match[0], match[0]), match.start()
            position = match.end()
            if closer := _CLOSERS.get(mark):
                if mark == "{" and misses < _MOST_MISSES:
                    if flat_match := _FLAT_OBJECT.match(text, mark_start, stop):
                        position, value_start, misses = flat_match.end(), -1, 0
                        continue
                    misses += 1
                open_brackets.append(closer)
                open_counts[closer] += 1
                value_start = position
            elif string_pattern := _STRING_PATTERNS.get(mark):
                # An apostrophe is a quote only where a value can begin.
                if mark == '"' or _BLANK.match(text, value_start).end() == mark_start:  # type: ignore[union-attr]
                    string_match = string_pattern.match(text, mark_start, stop)
                    if string_match is None and mark == "`":
                        continue  # the end of a word in prose
                    if self._strays(mark_start, string_match.end() if string_match else stop):
                        return None
                    if string_match is None:
                        self._is_in_string = True
                        return None
                    position = string_match.end()
                    value_start = -1
            elif mark in "}],:":
                while open_counts.get(mark):
                    closer = open_brackets.pop()
                    open_counts[closer] -= 1
                    if closer == mark:
                        break
                if not open_brackets:
                    return position
                value_start = position if mark in ",:" else -1
            elif comment_pattern := _COMMENT_PATTERNS.get(mark):
                comment_match = comment_pattern.match(text, position, stop)
                position = comment_match.end() if comment_match else stop
                if _BLANK.match(text, value_start).end() == mark_start:  # type: ignore[union-attr]
                    value_start = position
            elif self._is_fenced:
                return mark_start
            elif self._may_stray:
                self.stray_at = mark_start
                return None
        return None

    def _strays(self, start: int, end: int) -> bool:
        """Whether one fence more begins than ends in the string from *start* to *end*."""
        if self._may_stray and len(_FENCE_LINE.findall(self._text, start, end)) % 2:
            fence = _FENCE_LINE.search(self._text, start)
            self.stray_at = fence.start() if fence else None
        return self.stray_at is not None

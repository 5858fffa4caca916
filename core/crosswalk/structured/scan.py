"""Where in a text JSON stands.

Every function here looks at each character a bounded number of times.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from crosswalk.structured.reader import CLOSING_QUOTES, SPACE, STRINGS

__all__ = ["Region", "find_regions"]

# An object or array as JSON, Python, JavaScript and careless models begin it; not the braces of prose.
_QUOTES: Final = "".join(CLOSING_QUOTES)
_OPENER: Final = re.compile(
    rf"\{{{SPACE}*+(?:[{_QUOTES}}}/#,\u2026]|\.\.|[\w$][\w$-]*+{SPACE}*+:|\Z)"
    rf"|(?<!<!\[CDATA)\[{SPACE}*+(?:[{_QUOTES}{{\[\](\d/#,\u2026-]|\.\.|(?:[Tt]rue|[Ff]alse|null|None|NaN)\b|\Z)"
)
_STRUCTURE: Final = re.compile(rf"[{_QUOTES}{{}}\[\],:#]|\n[ \t]*+```|//|/\*")
_BLANK: Final = re.compile(rf"{SPACE}*+")
_LINE: Final = re.compile(r"[^\n]*+")
_COMMENT: Final = {"//": _LINE, "#": _LINE, "/*": re.compile(r".*?\*/", re.DOTALL)}
_STRING: Final = {opening: re.compile(string, re.DOTALL) for opening, string in STRINGS.items()}
_FENCE: Final = re.compile(r"(?:```|~~~)(?:[^\n`]*\n|[\w+.-]*)\s*\Z")
_FENCE_MARK: Final = re.compile(r"(^[ \t>]*+)?+(`{3,}+|~{3,}+)([\w+.-]*+)(\s*+\Z)?", re.MULTILINE)
_FENCE_END: Final = re.compile(r"\s*+(?:(?:```|~~~)[ \t]*+(?:\n|\Z)|`{1,2}\Z)")
_FENCE_LINE: Final = re.compile(r"\n[ \t]*+(?:```|~~~)")
_HALF_A_FENCE: Final = re.compile(r"\s(?:`{1,2}|~{1,2})\Z")
# An object of strings, numbers and words in which nothing is odd: most of the small ones, found in one step.
_STRING_OR_WORD: Final = r"""(?:"[^"\\\n]*+"|'[^'\\\n]*+'|[\w.+-]++)"""
_FLAT: Final = re.compile(rf"\{{(?:\s*+{_STRING_OR_WORD}\s*+[:,])*\s*+(?:{_STRING_OR_WORD}\s*+)?\}}")
_LONGEST_FENCE: Final = 200
_CLOSER: Final = {"{": "}", "[": "]"}
_MOST_STRAYS: Final = 16
_MOST_MISSES: Final = 16


@attrs.define
class Region:
    """A part of a text that looks like one JSON object or array.

    Attributes:
        text: the part, from its opening bracket on; empty for a fence that is opened and holds nothing yet.
        start: where it stands in the text.
        is_closed: whether its end is there; else it reaches to the end of the text.
        is_fenced: whether it is the first thing in a fenced block.
        is_between: whether it is not closed, and ends after a comma or a closing bracket, so that no text,
            number or word in it can have been cut.
        is_in_string: whether it is not closed, and ends in a string.
    """

    text: str
    start: int
    is_closed: bool
    is_fenced: bool
    is_between: bool = False
    is_in_string: bool = False

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.start + len(self.text)


def find_regions(text: str) -> list[Region]:
    """The regions of *text* as they stand. Only the last one can be open.

    Regions do not overlap: what is inside one, be it in a string or as a part, is no region of its own.

    A bracket or quote of prose that nothing closes before the next fence does not hide the fence; without a region
    in that fence it is where the answer breaks off.
    """
    found = _Scan(text, fences_end_prose=True)
    if found.strays and (found.strays > _MOST_STRAYS or not any(r.is_fenced for r in found.regions)):
        found = _Scan(text, fences_end_prose=False)
    return found.regions


class _Scan:
    """One walk through a text.

    Attributes:
        regions: what was found, as it stands.
        strays: how many openers of prose were passed over because the next fence begins inside of them.
    """

    def __init__(self, text: str, *, fences_end_prose: bool) -> None:
        self.regions: list[Region] = []
        self.strays = 0
        self._text = text
        self._fences: list[tuple[str, int]] = []  # the marks of those that are open, and where
        position = 0
        while opener := _OPENER.search(text, position):
            start = opener.start()
            before = text[max(position, start - _LONGEST_FENCE) : start]
            is_fenced = not self._pass_over(position, start) and _FENCE.search(before) is not None
            part = _Part(text, start, is_fenced, fences_end_prose)
            if part.stray_at is not None:
                self.strays += 1
                if self.strays > _MOST_STRAYS:
                    return
                position = part.stray_at
                continue
            self.regions.append(part.region())
            if part.end is None:
                if self._ends_in_half_a_fence(start):
                    self._add_open_fence()
                return
            # What a fence opened that stands in the request, not in the answer, begins with the JSON itself.
            is_begun = len(self.regions) == 1 and text[:start].strip() in ("", "json")
            if not self._fences and (is_fenced or (is_begun and _FENCE_END.match(text, part.end))):
                self._fences.append(("```", start))
            position = part.end
        self._pass_over(position, len(text))
        if self._fences[-1][1] >= position if self._fences else self._ends_in_half_a_fence(position):
            self._add_open_fence()

    def _ends_in_half_a_fence(self, start: int) -> bool:
        return _HALF_A_FENCE.search(self._text, max(start, len(self._text) - 3)) is not None

    def _add_open_fence(self) -> None:
        self.regions.append(Region("", len(self._text), is_closed=False, is_fenced=True))

    def _pass_over(self, start: int, end: int) -> bool:
        """Note the fences of prose; and say whether the last mark among it ends one."""
        is_end = False
        if self._text.find("```", start, end) < 0 and self._text.find("~~~", start, end) < 0:
            return is_end
        for found in _FENCE_MARK.finditer(self._text, start, end):
            before, mark, label, is_last = found.groups()
            is_end = not label and bool(self._fences) and mark.startswith(self._fences[-1][0])
            if is_end:
                self._fences.pop()
            elif before is not None or is_last is not None:
                # In the middle of a line it begins none, save at the very end.
                self._fences.append((mark, found.start()))
        return is_end


class _Part:
    """A region that begins at *start*: where it ends, and what can be said of it.

    A bracket that nothing opened is passed over; one that closes an outer bracket closes the inner ones too. A
    fence that ends before its JSON does ends the JSON: the model forgot to close it, nobody cut it.

    Attributes:
        end: where it ends; ``None`` where the text ends before it.
        stray_at: where a fence begins inside of it, which no JSON of prose can hold; ``None`` where none does.
    """

    def __init__(self, text: str, start: int, is_fenced: bool, fences_end_prose: bool) -> None:
        self._text, self._start, self._is_fenced = text, start, is_fenced
        self._may_stray = fences_end_prose and not is_fenced
        self._is_in_string = False
        self.stray_at: int | None = None
        self.end = self._walk()

    def region(self) -> Region:
        """The region itself."""
        part = self._text[self._start : self.end]
        is_open = self.end is None
        is_between = is_open and not self._is_in_string and part.rstrip()[-1] in ",}]"
        return Region(part, self._start, not is_open, self._is_fenced, is_between, self._is_in_string)

    def _walk(self) -> int | None:
        text = self._text
        if flat := _FLAT.match(text, self._start):
            return flat.end()
        open_brackets: list[str] = []
        count = {"}": 0, "]": 0}
        position = self._start
        misses = 0  # how many objects in a row were not flat
        value_from = -1  # where a value, or a key, may begin
        while found := _STRUCTURE.search(text, position):
            mark, at = found[0], found.start()
            position = found.end()
            if closer := _CLOSER.get(mark):
                if mark == "{" and misses < _MOST_MISSES:
                    if flat := _FLAT.match(text, at):
                        position, value_from, misses = flat.end(), -1, 0
                        continue
                    misses += 1
                open_brackets.append(closer)
                count[closer] += 1
                value_from = position
            elif string := _STRING.get(mark):
                # An apostrophe is a quote only where a value can begin.
                if mark == '"' or _BLANK.match(text, value_from).end() == at:  # type: ignore[union-attr]
                    ended = string.match(text, at)
                    if ended is None and mark == "`":
                        continue  # the end of a word in prose
                    if self._strays(at, ended.end() if ended else len(text)):
                        return None
                    if ended is None:
                        self._is_in_string = True
                        return None
                    position = ended.end()
                    value_from = -1
            elif mark in "}],:":
                while count.get(mark):
                    closer = open_brackets.pop()
                    count[closer] -= 1
                    if closer == mark:
                        break
                if not open_brackets:
                    return position
                value_from = position if mark in ",:" else -1
            elif comment := _COMMENT.get(mark):
                skipped = comment.match(text, position)
                position = skipped.end() if skipped else len(text)
                if _BLANK.match(text, value_from).end() == at:  # type: ignore[union-attr]
                    value_from = position
            elif self._is_fenced:
                return at
            elif self._may_stray:
                self.stray_at = at
                return None
        return None

    def _strays(self, start: int, end: int) -> bool:
        """Whether one fence more begins than ends in the string from *start* to *end*."""
        if self._may_stray and len(_FENCE_LINE.findall(self._text, start, end)) % 2:
            fence = _FENCE_LINE.search(self._text, start)
            self.stray_at = fence.start() if fence else None
        return self.stray_at is not None

"""Where in a text JSON stands, and how JSON that ends in the middle can be closed.

Every function here looks at each character a bounded number of times.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

__all__ = ["Region", "closed", "find_regions"]

# An object or array as JSON, Python, JavaScript and careless models begin it; not the braces of prose.
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019"
_OPENER: Final = re.compile(
    rf"\{{\s*+(?:[{_QUOTES}}}/#,]|[^\W\d][\w$-]*+\s*+:|\Z)"
    rf"|\[\s*+(?:[{_QUOTES}{{\[\]\d/#,-]|(?:[Tt]rue|[Ff]alse|null|None|NaN)\b|\Z)"
)
_STRUCTURE: Final = re.compile(r"[\"'\u201c{}\[\],:]|\n[ \t]*+```|//|/\*")
_COMMENT: Final = {"//": re.compile(r"[^\n]*+"), "/*": re.compile(r".*?\*/", re.DOTALL)}
_STRING: Final = {
    '"': re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL),
    "'": re.compile(r"'[^'\\]*+(?:\\.[^'\\]*+)*+'", re.DOTALL),
    "\u201c": re.compile('\u201c[^\u201d"]*+[\u201d"]'),
}
_NUMBER: Final = re.compile(r"[-+]?[0-9][0-9.eE+-]*")
_FENCE: Final = re.compile(r"(?:```|~~~)(?:[^\n`]*\n|[\w+.-]*)\s*\Z")
_FENCE_MARK: Final = re.compile(r"(^[ \t>]*+)?+(?:`{3,}+|~{3,}+)(?:[\w+.-]*\s*+\Z)?", re.MULTILINE)
_FENCE_END: Final = re.compile(r"\s*+(?:(?:```|~~~)[ \t]*+(?:\n|\Z)|`{1,2}\Z)")
_FENCE_LINE: Final = re.compile(r"\n[ \t]*+(?:```|~~~)")
_HALF_A_FENCE: Final = re.compile(r"\s(?:`{1,2}|~{1,2})\Z")
_LONGEST_FENCE: Final = 200
_CLOSER: Final = {"{": "}", "[": "]"}
_MOST_STRAYS: Final = 16


@attrs.frozen
class Region:
    """A part of a text that looks like one JSON object or array.

    Attributes:
        text: the part, from its opening bracket on; empty for a fence that is opened and holds nothing yet.
        is_closed: whether its end is there; else it reaches to the end of the text.
        is_fenced: whether it is the first thing in a fenced block.
        is_between: whether it is not closed, and ends after a comma or a closing bracket, so that no text,
            number or word in it can have been cut.
        is_unclear: whether a key in it has no value, or two numbers for one: nobody can tell what was meant.
    """

    text: str
    is_closed: bool
    is_fenced: bool
    is_between: bool = False
    is_unclear: bool = False


def find_regions(text: str) -> list[Region]:
    """The regions of *text* in the order to try them: those of fenced blocks first, then as they stand.

    Regions do not overlap: what is inside one, be it in a string or as a part, is no region of its own. Only the
    last one in the text can be open. It hides those that come after it in this order: they would be tried only if
    the open one, when it is whole, turned out to be invalid.

    A bracket or quote of prose that nothing closes before the next fence does not hide the fence; without a region
    in that fence it is where the answer breaks off.
    """
    found = _Scan(text, fences_end_prose=True)
    if found.strays and (found.strays > _MOST_STRAYS or not any(r.is_fenced for r in found.regions)):
        found = _Scan(text, fences_end_prose=False)
    fenced = [region for region in found.regions if region.is_fenced]
    ordered = fenced + [region for region in found.regions if not region.is_fenced]
    open_at = next((at for at, region in enumerate(ordered) if not region.is_closed), len(ordered))
    return ordered[: open_at + 1]


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
        self._is_in_fence = False
        position = 0
        while opener := _OPENER.search(text, position):
            start = opener.start()
            before = text[max(position, start - _LONGEST_FENCE) : start]
            is_fenced = _FENCE.search(before) is not None
            part = _Part(text, start, is_fenced, fences_end_prose)
            if part.stray_at is not None:
                self.strays += 1
                if self.strays > _MOST_STRAYS:
                    return
                self._pass_over(position, start)
                position = part.stray_at
                continue
            self.regions.append(part.region())
            if part.end is None:
                if _HALF_A_FENCE.search(text, start):
                    self._add_open_fence()
                return
            self._pass_over(position, start)
            # What a fence opened that stands in the request, not in the answer, begins with the JSON itself.
            is_begun = len(self.regions) == 1 and text[:start].strip() in ("", "json")
            self._is_in_fence = is_fenced or (is_begun and _FENCE_END.match(text, part.end) is not None)
            position = part.end
        self._pass_over(position, len(text))
        if self._is_in_fence or _HALF_A_FENCE.search(text, position):
            self._add_open_fence()

    def _add_open_fence(self) -> None:
        self.regions.append(Region("", is_closed=False, is_fenced=True))

    def _pass_over(self, start: int, end: int) -> None:
        for mark in _FENCE_MARK.finditer(self._text, start, end):
            # In the middle of a line it ends a fence, but begins none, save at the very end.
            self._is_in_fence = not self._is_in_fence and (
                mark[1] is not None or mark.end() == len(self._text)
            )


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
        self._ends_in_string = self._is_unclear = False
        self.stray_at: int | None = None
        self.end = self._walk()

    def region(self) -> Region:
        """The region itself."""
        part = self._text[self._start : self.end]
        is_open = self.end is None
        is_between = is_open and not self._ends_in_string and part.rstrip()[-1] in ",}]"
        return Region(part, not is_open, self._is_fenced, is_between, self._is_unclear)

    def _walk(self) -> int | None:
        text = self._text
        open_brackets: list[str] = []
        count = {"}": 0, "]": 0}
        position = before = self._start
        while found := _STRUCTURE.search(text, position):
            mark, at = found[0], found.start()
            position = found.end()
            if string := _STRING.get(mark):
                # An apostrophe is a quote only where a value can begin.
                if mark == '"' or (text[before] in "{[,:" and not text[before + 1 : at].strip()):
                    ended = string.match(text, at)
                    if self._strays(at, ended.end() if ended else len(text)):
                        return None
                    if ended is None:
                        self._ends_in_string = True
                        return None
                    position = ended.end()
            elif mark in "{[":
                open_brackets.append(_CLOSER[mark])
                count[_CLOSER[mark]] += 1
            elif mark in "}],:":
                self._look_at_value(before, at)
                while count.get(mark):
                    closer = open_brackets.pop()
                    count[closer] -= 1
                    if closer == mark:
                        break
                if not open_brackets:
                    return position
            elif comment := _COMMENT.get(mark):
                skipped = comment.match(text, position)
                position = skipped.end() if skipped else len(text)
            elif self._is_fenced:
                return at
            elif self._may_stray:
                self.stray_at = at
                return None
            before = at
        return None

    def _strays(self, start: int, end: int) -> bool:
        """Whether one fence more begins than ends in the string from *start* to *end*."""
        if self._may_stray and len(_FENCE_LINE.findall(self._text, start, end)) % 2:
            fence = _FENCE_LINE.search(self._text, start)
            self.stray_at = fence.start() if fence else None
        return self.stray_at is not None

    def _look_at_value(self, before: int, at: int) -> None:
        if self._text[before] == ":" and self._text[at] != ":":
            words = self._text[before + 1 : at].split()
            if not words or (len(words) > 1 and all(map(_NUMBER.fullmatch, words))):
                self._is_unclear = True


_TOKEN: Final = re.compile(
    r'(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")|(?P<cut>"[^"\\]*+(?:\\(?:[^u]|u[0-9a-fA-F]{4})[^"\\]*+)*+)'
    r"|(?P<mark>[{}\[\],:])|(?P<scalar>[^\s{}\[\],:\"]++)",
    re.DOTALL,
)
_HALF_A_PAIR: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def closed(text: str, *, keep_cut_string: bool) -> str | None:
    """JSON that begins like *text* and is closed after what is whole in it.

    A number or word at the very end may go on, and a key without its value says nothing: they are left out.

    Args:
        text: begins with an opening bracket.
        keep_cut_string: keep a text value that is cut, as far as it goes.

    Returns:
        The JSON, valid if *text* is the beginning of valid JSON; ``None`` where its brackets do not match.
    """
    closers: list[str] = []
    is_key_next = False
    whole = 0
    for token in _TOKEN.finditer(text):
        kind, end = token.lastgroup, token.end()
        mark = token[0] if kind == "mark" else ""
        if kind == "cut":
            if keep_cut_string and not is_key_next:
                kept = _HALF_A_PAIR.sub("", text[token.start() : end])
                return f'{text[: token.start()]}{kept}"{"".join(reversed(closers))}'
            break
        if mark in ("{", "["):
            closers.append(_CLOSER[mark])
            is_key_next = mark == "{"
            whole = end
        elif mark in ("}", "]"):
            if closers.pop() != mark:
                return None
            whole, is_key_next = end, False
            if not closers:
                break
        elif mark == ",":
            is_key_next = closers[-1] == "}"
        elif kind == "string" and is_key_next:
            is_key_next = False
        elif kind == "string" or (kind == "scalar" and end < len(text)):
            whole = end
    return text[:whole] + "".join(reversed(closers))

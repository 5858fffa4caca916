"""Where in a text JSON stands, and how JSON that ends in the middle can be closed.

Every function here looks at each character a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

__all__ = ["Region", "closed", "find_regions"]

# An object or array as JSON, Python, JavaScript and careless models begin it; not the braces of prose.
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019"
_OPENER: Final = re.compile(
    rf"\{{\s*+(?:[{_QUOTES}}}/#,]|[^\W\d][\w$-]*+\s*+:|\Z)"
    rf"|\[\s*+(?:[{_QUOTES}{{\[\]\d/#,-]|(?:[Tt]rue|[Ff]alse|null|None|NaN)\b|\Z)"
)
_STRUCTURE: Final = re.compile(r"[\"'{}\[\],:]|\n[ \t]*+```|//|/\*")
_COMMENT: Final = {"//": re.compile(r"[^\n]*+"), "/*": re.compile(r".*?\*/", re.DOTALL)}
_DOUBLE_QUOTED: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SINGLE_QUOTED: Final = re.compile(r"'[^'\\]*+(?:\\.[^'\\]*+)*+'", re.DOTALL)
_FENCE: Final = re.compile(r"(?:```|~~~)(?:[^\n`]*\n|[\w+.-]*)\s*\Z")
_LONGEST_FENCE: Final = 200
_CLOSER: Final = {"{": "}", "[": "]"}


@attrs.frozen
class Region:
    """A part of a text that looks like one JSON object or array.

    Attributes:
        text: the part, from its opening bracket on.
        is_closed: whether its end is there; else it reaches to the end of the text.
        is_fenced: whether it is the first thing in a fenced block.
        is_between: whether it is not closed, and ends after a comma or a closing bracket, so that no text,
            number or word in it can have been cut.
    """

    text: str
    is_closed: bool
    is_fenced: bool
    is_between: bool = False


def find_regions(text: str) -> list[Region]:
    """The regions of *text* in the order to try them: those of fenced blocks first, then as they stand.

    Regions do not overlap: what is inside one, be it in a string or as a part, is no region of its own. Only the
    last one can be open, and nothing inside it is offered in its place.
    """
    found = list(_regions(text))
    return [region for region in found if region.is_fenced] + [r for r in found if not r.is_fenced]


def _regions(text: str) -> Iterator[Region]:
    position = 0
    while opener := _OPENER.search(text, position):
        start = opener.start()
        before = text[max(position, start - _LONGEST_FENCE) : start]
        is_fenced = _FENCE.search(before) is not None
        end, is_in_string = _end(text, start, is_fenced)
        if end is None:
            rest = text[start:]
            is_between = not is_in_string and rest.rstrip()[-1] in ",}]"
            yield Region(rest, is_closed=False, is_fenced=is_fenced, is_between=is_between)
            return
        yield Region(text[start:end], is_closed=True, is_fenced=is_fenced)
        position = end


def _end(text: str, start: int, is_fenced: bool) -> tuple[int | None, bool]:
    """Where the region that begins at *start* ends, and whether it breaks off inside a string.

    A bracket that nothing opened is passed over; one that closes an outer bracket closes the inner ones too. A
    fence that ends before its JSON does ends the JSON: the model forgot to close it, nobody cut it.
    """
    open_brackets: list[str] = []
    count = {"}": 0, "]": 0}
    position, before = start, start
    while found := _STRUCTURE.search(text, position):
        mark, at = found[0], found.start()
        position = found.end()
        if mark == '"':
            string = _DOUBLE_QUOTED.match(text, at)
            if string is None:
                return None, True
            position = string.end()
        elif mark == "'":
            # An apostrophe is a quote only where a value can begin.
            is_value = text[before] in "{[,:" and not text[before + 1 : at].strip()
            if is_value and (string := _SINGLE_QUOTED.match(text, at)):
                position = string.end()
        elif mark in "{[":
            open_brackets.append(_CLOSER[mark])
            count[_CLOSER[mark]] += 1
        elif mark in "}]":
            while count[mark]:
                closer = open_brackets.pop()
                count[closer] -= 1
                if closer == mark:
                    break
            if not open_brackets:
                return position, False
        elif comment := _COMMENT.get(mark):
            skipped = comment.match(text, position)
            position = skipped.end() if skipped else len(text)
        elif mark not in ",:" and is_fenced:
            return at, False
        before = at
    return None, False


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

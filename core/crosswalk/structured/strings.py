"""The strings of models: quotes of every kind, blanks, and escapes."""

from __future__ import annotations

import re
from typing import Final

import orjson

BLANKS: Final = r"\s\u00ad\u200b-\u200f\u2060\ufeff"
SPACE: Final = f"[{BLANKS}]"
"""The characters between two tokens, including invisible ones."""

CLOSING_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u2018": "\u2019",
    "\u201a": "\u2018\u2019",
    "\u00ab": "\u00bb",
}
"""The quotes that a string may begin with, and for each those that it ends with: straight, curly, German, angular."""

STRINGS: Final = {
    opening: rf"{opening}[^{closing}\\]*+(?:\\.[^{closing}\\]*+)*+[{closing}]"
    for opening, closing in CLOSING_QUOTES.items()
} | {"`": r"`(?!`)[^`\\]*+(?:\\.[^`\\]*+)*+`(?!`)"}  # two in a row are the mark of a fence
"""The pattern of a string by the quote that it begins with; a dot in it matches a line break too."""

QUOTES: Final = "".join(CLOSING_QUOTES)
"""Every character that a string may begin with."""

FULL_WIDTH: Final = str.maketrans("\uff0c\uff1a\uff1b\uff5b\uff5d\uff3b\uff3d", ",:;{}[]")
"""The full-width forms of the marks of JSON, for :meth:`str.translate`."""

_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*+')
_ESCAPE: Final = re.compile(r'\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|0[0-9]|\r\n|.)|["\x00-\x1f]', re.DOTALL)
_SAME_EVERYWHERE: Final = {r"\'": "'", r"\v": r"\u000b", r"\0": r"\u0000", "\\\n": "", "\\\r\n": ""}
_KEEPING: Final = frozenset("cdeghijklmopqswyzABCDEFGHIJKLMOPQRSTVWXYZ")
"""Letters that no escape begins with: who wrote ``\\d`` did not know that a backslash has to be escaped."""
_HARMLESS: Final = frozenset(("\\\\", '\\"', "\\'"))
_WHOLE_ESCAPES: Final = {
    opening: re.compile(
        rf"[^{closing}\\]*+(?:\\(?:u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}}|[^ux])[^{closing}\\]*+)*", re.DOTALL
    )
    for opening, closing in CLOSING_QUOTES.items()
}
_HALF_AN_ESCAPE: Final = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?)?\Z")
_HALF_A_PAIR: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")


def decode_string(content: str, quote: str = '"') -> str | None:
    """Return the content of a string with its escapes decoded, or ``None`` if they are ambiguous.

    JSON strings are decoded as JSON. Of other strings, escapes count that JSON5 and Python read in the same way. A backslash
    before a letter that begins no escape is a backslash, unless another escape in the string makes a character.

    Args:
        content: the string without its quotes. Line breaks and control characters are literal.
        quote: the opening quote.
    """
    if _PLAIN.fullmatch(content):
        return content
    try:
        return str(orjson.loads(f'"{content}"'))
    except orjson.JSONDecodeError:
        pass
    escapes = {escape for escape in _ESCAPE.findall(content) if escape[0] == "\\"}
    own = {f"\\{closing}": closing for closing in CLOSING_QUOTES[quote] if closing != '"'}
    read = {**_SAME_EVERYWHERE, **own}
    unknown = {escape for escape in escapes if escape not in read and not _is_known(escape)}
    if unknown:
        is_kept = any(escape[1] in _KEEPING for escape in unknown)
        if not is_kept or escapes - unknown - _HARMLESS:
            return None
        if not all(escape[1] in _KEEPING or not escape[1].isalnum() for escape in unknown):
            return None
        read.update({escape: f"\\\\{escape[1]}" for escape in unknown})

    def as_json(found: re.Match[str]) -> str:
        raw = found[0]
        if raw[0] != "\\":
            return rf"\u{ord(raw):04x}"
        return rf"\u00{raw[2:]}" if raw[1] == "x" else read.get(raw, raw)

    try:
        return str(orjson.loads(f'"{_ESCAPE.sub(as_json, content)}"'))
    except orjson.JSONDecodeError:  # half a surrogate pair
        return None


def _is_known(escape: str) -> bool:
    return escape[1] in '"\\/bfnrt' or len(escape) > 3


def whole_escapes(cut_string: str) -> str:
    """Return the whole part of a string that breaks off, without its quote."""
    result = _WHOLE_ESCAPES[cut_string[0]].match(cut_string, 1)
    content, end = (result[0], result.end()) if result else ("", 1)
    if not _HALF_AN_ESCAPE.match(cut_string, end):
        return cut_string[1:]  # an escape that is none: decoding refuses it
    before = content[:-6]
    is_escaped = (len(before) - len(before.rstrip("\\"))) % 2
    return before if _HALF_A_PAIR.fullmatch(content[-6:]) and not is_escaped else content

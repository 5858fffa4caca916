"""The relation of the text around an object to it, judged by its structure alone."""

from __future__ import annotations

import re
from typing import Final

from crosswalk.schemas.check import folded_key
from crosswalk.structured.strings import CLOSING_QUOTES, FULL_WIDTH, QUOTES, SPACE

_QUOTED: Final = rf"[{QUOTES}]?[^{QUOTES}\n]{{1,99}}[{QUOTES}]"  # whose beginning may have been cut off
_HARMLESS: Final = re.compile(r"[\s}\])>;`]*+")
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
    r"(?:\A|\n)[ \t/#*>|-]*+([A-Za-z_][\w-]*+)[*`]*+\s?[:=]\s*+(?:[\"'\[\d-]|true\b|false\b|null\b)"
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
    closers = _HARMLESS.match(remainder)
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
    is_around = text[start - 1 : start] in CLOSING_QUOTES
    if quote in CLOSING_QUOTES and not is_around and quote in remainder[1:].partition("\n")[0]:
        return True
    closer = _unopened(remainder, position)
    if closer is None or _EMOTICON.search(remainder, 0, closer):
        return False
    return comma is not None or _JSON_SIGN.search(remainder, 0, closer) is not None


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

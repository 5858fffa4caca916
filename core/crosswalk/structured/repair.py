"""Reads the JSON of models, and repairs what is damaged in its structure. It never changes a value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NoReturn

import attrs
import orjson

from crosswalk.schemas.metadata import ExactFloat as ExactFloat
from crosswalk.structured.result import ReasonCode, Violation
from crosswalk.types.json import load_json, step

# --------------------------------------------------------------------------------- strings
# Strings as models write them: quotes of every kind, white space, and escapes.


BLANKS: Final = r"\s\u00ad\u200b-\u200f\u2060\ufeff"
SPACE: Final = f"[{BLANKS}]"
"""A pattern for one character between two tokens. Invisible characters are included."""

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
"""The closing quotes for each opening quote: straight, curly, German and angular ones."""

STRINGS: Final = {
    opening: rf"{opening}[^{closing}\\]*+(?:\\.[^{closing}\\]*+)*+[{closing}]"
    for opening, closing in CLOSING_QUOTES.items()
} | {"`": r"`(?!`)[^`\\]*+(?:\\.[^`\\]*+)*+`(?!`)"}  # two backticks in a row are part of a fence
"""The pattern of a string for each opening quote. Compile it with ``re.DOTALL``."""

QUOTES: Final = "".join(CLOSING_QUOTES)
"""All opening quotes."""

FULL_WIDTH: Final = str.maketrans("\uff0c\uff1a\uff1b\uff5b\uff5d\uff3b\uff3d", ",:;{}[]")
"""The full-width forms of JSON's punctuation, for :meth:`str.translate`."""

_PLAIN_CONTENT: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*+')
_ESCAPE: Final = re.compile(r'\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|0[0-9]|\r\n|.)|["\x00-\x1f]', re.DOTALL)
_COMMON_ESCAPES: Final = {r"\'": "'", r"\v": r"\u000b", r"\0": r"\u0000", "\\\n": "", "\\\r\n": ""}
_UNESCAPED_LETTERS: Final = frozenset("cdeghijklmopqswyzABCDEFGHIJKLMOPQRSTVWXYZ")
"""Letters without an escape sequence. A model that wrote ``\\d`` forgot to escape the backslash."""
_HARMLESS_ESCAPES: Final = frozenset(("\\\\", '\\"', "\\'"))
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

    JSON strings are decoded as JSON. In other strings, an escape counts if JSON5 and Python read it in the same way. A
    backslash before a letter without an escape sequence is a literal backslash, unless another escape in the string
    encodes a character.

    Args:
        content: the string without its quotes. Line breaks and control characters are literal.
        quote: the opening quote.
    """
    if _PLAIN_CONTENT.fullmatch(content):
        return content
    try:
        return str(orjson.loads(f'"{content}"'))
    except orjson.JSONDecodeError:
        pass
    escapes = {escape for escape in _ESCAPE.findall(content) if escape[0] == "\\"}
    own_escapes = {f"\\{closing}": closing for closing in CLOSING_QUOTES[quote] if closing != '"'}
    replacements = {**_COMMON_ESCAPES, **own_escapes}
    unknown_escapes = {escape for escape in escapes if escape not in replacements and not _is_known(escape)}
    if unknown_escapes:
        is_kept = any(escape[1] in _UNESCAPED_LETTERS for escape in unknown_escapes)
        if not is_kept or escapes - unknown_escapes - _HARMLESS_ESCAPES:
            return None
        if not all(escape[1] in _UNESCAPED_LETTERS or not escape[1].isalnum() for escape in unknown_escapes):
            return None
        replacements.update({escape: f"\\\\{escape[1]}" for escape in unknown_escapes})

    def as_json(match: re.Match[str]) -> str:
        escape = match[0]
        if escape[0] != "\\":
            return rf"\u{ord(escape):04x}"
        return rf"\u00{escape[2:]}" if escape[1] == "x" else replacements.get(escape, escape)

    try:
        return str(orjson.loads(f'"{_ESCAPE.sub(as_json, content)}"'))
    except orjson.JSONDecodeError:  # half a surrogate pair
        return None


def _is_known(escape: str) -> bool:
    return escape[1] in '"\\/bfnrt' or len(escape) > 3


def whole_escapes(cut_string: str) -> str:
    """Return the content of a truncated string, without its quote and without an incomplete escape at its end."""
    match = _WHOLE_ESCAPES[cut_string[0]].match(cut_string, 1)
    content, end = (match[0], match.end()) if match else ("", 1)
    if not _HALF_AN_ESCAPE.match(cut_string, end):
        return cut_string[1:]  # not a valid escape: decoding refuses it
    content_before = content[:-6]
    is_escaped = (len(content_before) - len(content_before.rstrip("\\"))) % 2
    return content_before if _HALF_A_PAIR.fullmatch(content[-6:]) and not is_escaped else content


# ---------------------------------------------------------------------------------- decode
# Decode JSON, up to the depth that all later steps support.


class UnreadJSON(Enum):
    """The result of :func:`loads` where there is no decoded JSON. No schema accepts it."""

    NO_JSON = "not JSON"
    TOO_DEEP = "nested too deeply"


NO_JSON: Final = UnreadJSON.NO_JSON
"""The result for text that is not JSON."""

TOO_DEEP: Final = UnreadJSON.TOO_DEEP
"""The result for JSON that is nested deeper than :data:`MAX_DEPTH`."""

MAX_DEPTH: Final = 100
"""The greatest depth of nested arrays and objects. Deeper JSON could be neither printed nor written."""


def loads(text: str, *, is_exact: bool = False) -> Any:
    """Return decoded JSON, or :data:`NO_JSON` if it is not JSON or a key is repeated. NaN and infinity are not JSON.

    With *is_exact* a number with a fraction keeps its digits, as :class:`ExactFloat`.
    """
    encoded_text = text.encode("utf-8", "surrogatepass")
    try:
        value = load_json(encoded_text, unique_keys=True)
    except orjson.JSONDecodeError:
        return NO_JSON
    if is_exact:
        value = json.loads(text, parse_float=ExactFloat)
    may_be_deep = encoded_text.count(b"{") + encoded_text.count(b"[") > MAX_DEPTH
    return TOO_DEEP if may_be_deep and is_too_deep(value) else value


def is_too_deep(data: Any) -> bool:
    """Return whether *data* is nested deeper than :data:`MAX_DEPTH`."""
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


# ---------------------------------------------------------------------------------- reader
# Read the JSON of models: repair damaged structure, and never change a value.
#
# Every scalar in the result is one whole literal of the text with the same meaning in JSON, JSON5 and Python. Anything
# else is refused with its position. The time is linear in the length of the text.


_ANY_STRING: Final = "|".join(STRINGS.values())
_TOKEN: Final = re.compile(
    rf"{SPACE}*+(?:(?P<mark>[{{}}\[\](),;:\uff0c\uff1a\uff5b\uff5d\uff3b\uff3d])|(?P<string>{_ANY_STRING})|(?P<assign>=>?)"
    r"|(?P<comment>//[^\n]*+|\#[^\n]*+|/\*.*?\*/)|(?P<elision>\.\.|\u2026)"
    rf"|(?P<word>[^{BLANKS},;:\uff0c\uff1a\uff5b\uff5d\uff3b\uff3d{{}}\[\]()=\u2026#{QUOTES}]++)"
    r"|(?P<open>.)|(?P<end>\Z))",
    re.DOTALL,
)
_COLON_NEXT: Final = re.compile(rf"{SPACE}*+[:=\uff1a]")
_LEFT_OUT: Final = re.compile(r"\.\.|\u2026")
_LINE_END: Final = re.compile(r"[^\S\n]*+(?:\n|\Z)")
_END_NEXT: Final = re.compile(rf"{SPACE}*+[\]}}]")
_WHITE_SPACE: Final = frozenset(" \t\r\n")
_LONGEST_INDENT: Final = 200
_BARE_KEY: Final = re.compile(r"[^\W\d][\w$-]*+|\$[\w$-]*+")
_WORD_VALUES: Final = {
    spelling: value
    for word, value in (("true", True), ("false", False), ("null", None))
    for spelling in (word, word.title(), word.upper())
} | {"None": None}
# A group that may match in part is not possessive (``(?:…)*+``), here as elsewhere: before Python 3.11.5 the match continued
# behind that part. A possessive group is safe where the rest of the pattern cannot match there, as at the end of a text.
_WHOLE_NUMBER: Final = r"(?:0|[1-9][0-9]*+(?:_[0-9]++)*)"
_INTEGER: Final = re.compile(rf"[-+]?(?:{_WHOLE_NUMBER}|0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++)")
_NUMBER: Final = re.compile(rf"[-+]?(?:{_WHOLE_NUMBER}(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")

_INNER_QUOTES: Final = re.compile(
    r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*'
    r'(?:(?<=[\s(])(?<![,:{\[]\s)"(?=[^\s"])(?!{SPACE}*+[,:}}\]])[^"\\\n]*+(?:\\.[^"\\\n]*+)*(?<=\S)"(?=[\s.;!?)-])'
    rf'(?!{SPACE}*+[,:}}\]])[^"\\\n]*+(?:\\.[^"\\\n]*+)*)+"(?={SPACE}*+[,:}}\]])'
)
"""A string that contains quoted words without escapes, with the quotes set as in prose."""

_KEY, _COLON, _VALUE, _NEXT, _NOTHING = range(5)


class UnreadableError(Exception):
    """The text cannot be read. This package catches the error.

    Attributes:
        violation: the problem and its path.
        position: the index in the text.
    """

    def __init__(self, violation: Violation, position: int = 0) -> None:
        super().__init__(violation.message)
        self.violation = violation
        self.position = position


@attrs.define
class Reading:
    """The result of :func:`read_json`.

    Attributes:
        value: the object or array.
        is_closed_early: whether a closing bracket was missing, so that an outer bracket or the end of the text closed an
            object or array.
        cut: the path of the string in which the text ends, or ``None`` if it does not end in a string.
        cut_in: the container of that string, and its key or index there.
        is_between: whether only closing brackets are missing: the text ends behind a whole value or a comma, and no array
            is open, which may have had more items.
        is_open: whether the end of the text closed the outermost object or array.
        has_comments: whether the text contains comments.
        open_path: the keys and indexes that lead to the last value that may go on, or ``None`` if all are final. A comma
            or a closing bracket behind a value makes it final.
        open: the ``id`` of each object or array without its closing bracket.
        gaps: the ``id`` of each object with a comment in the position of a member.
    """

    value: Any
    is_closed_early: bool = False
    cut: str | None = None
    cut_in: tuple[Any, Any] | None = None
    is_between: bool = False
    is_open: bool = False
    has_comments: bool = False
    open_path: tuple[str | int, ...] | None = None
    open: frozenset[int] = frozenset()
    gaps: frozenset[int] = frozenset()


@attrs.define
class _Box:
    """An object or array without its closing bracket so far.

    Attributes:
        value: its content so far.
        closer: the bracket that closes it.
        key: the current key of an object.
        has_comma: whether it contains a comma.
    """

    value: Any
    closer: str
    key: str = ""
    has_comma: bool = False


def read_json(
    text: str, *, is_cut: bool = False, inner_quotes: bool = False, is_exact: bool = False
) -> Reading:
    """Read *text*, one object or array, and repair its structure.

    It accepts extra, trailing and missing commas, missing colons, other kinds of quotes, keys without quotes, other signs
    between key and value, comments, Python's words and tuples. It also accepts a missing closing bracket before an outer
    one or at the end.

    Args:
        text: the text from the first bracket to the last one.
        is_cut: whether the text is truncated. Then the result holds the values so far. A number, word or key at the very
            end is left out, because it may continue.
        inner_quotes: whether pairs of quotes inside of a string belong to the string.
        is_exact: whether a number with a fraction keeps its digits.

    Raises:
        UnreadableError: a value is not a literal (``repair_failed``), a part is left out (``truncated``), a key is repeated
            (``duplicate_key``), or the text is nested too deeply (``limit_exceeded``).
    """
    return _Reader(text, is_cut, inner_quotes, is_exact).read()


class _Reader:
    def __init__(self, text: str, is_cut: bool, inner_quotes: bool, is_exact: bool) -> None:
        self._text = text
        self._is_cut = is_cut
        self._inner_quotes = inner_quotes
        self._float: Callable[[str], float] = ExactFloat if is_exact else float
        self._boxes: list[_Box] = []
        self._root: Any = None
        self._expected = _VALUE
        self._is_closed_early = False
        self._is_bare_key = False
        self._last, self._last_token = "", ""
        self._at = 0
        self._space = ""  # before the token
        self._has_comments = False
        self._gaps: set[int] = set()

    def read(self) -> Reading:
        """Return the result. Call it once."""
        reading = self._read()
        reading.has_comments = self._has_comments
        reading.open = frozenset(id(box.value) for box in self._boxes)
        reading.gaps = frozenset(self._gaps)
        if self._boxes:
            keys = [box.key if box.closer == "}" else len(box.value) - 1 for box in self._boxes]
            reading.open_path = tuple(keys if self._expected == _NEXT else keys[:-1])
        return reading

    def _read(self) -> Reading:
        match_token, position, size = _TOKEN.match, 0, len(self._text)
        while True:
            token = match_token(self._text, position)
            kind: str = token.lastgroup  # type: ignore[union-attr, assignment]
            start, end = token.span(kind)  # type: ignore[union-attr]
            self._space = self._text[position:start]
            self._at, position = start, end
            if (
                kind == "string"
                and self._inner_quotes
                and (longer_match := _INNER_QUOTES.match(self._text, start))
            ):
                position = longer_match.end()
            lexeme = self._text[start:position]
            if kind == "mark":
                self._mark(lexeme)
            elif kind == "string":
                self._string(lexeme, position)
            elif kind == "word":
                if (
                    self._is_cut
                    and position == size
                    and self._expected in (_KEY, _VALUE)
                    and lexeme not in _WORD_VALUES
                ):
                    return self._ended(None)
                self._word(lexeme)
            elif kind == "assign":
                self._mark(":")
            elif kind == "comment":
                self._comment(lexeme, start, position)
                continue
            elif kind == "elision":
                self._left_out()
            elif kind == "end":
                return self._ended(None)
            elif self._is_cut:
                return self._ended(self._text[position - 1 :])
            else:
                self._refuse("a string without an end")
            self._last, self._last_token = kind, lexeme

    def _comment(self, comment: str, start: int, end: int) -> None:
        """Ignore a comment, unless it is in the position of an item or member, or on a line behind a key or value.

        The words of the comment do not matter: one behind a value may always correct it.
        """
        self._has_comments = True
        is_alone = not self._text[max(0, start - _LONGEST_INDENT) : start].rpartition("\n")[2].strip()
        is_last = _END_NEXT.match(self._text, end) is not None
        is_in_place = is_alone or is_last or not _LINE_END.match(self._text, end)
        is_behind_value = self._expected == _NEXT
        if _LEFT_OUT.search(comment) or (self._is_in_array and (is_behind_value or is_in_place)):
            self._left_out()
        if not self._is_in_array:
            if self._last_token in ("]", ")") or (
                is_last and self._last_token != "{" and (is_alone or not is_behind_value)
            ):
                self._left_out()
            if is_in_place and self._boxes and (self._expected == _KEY or (is_behind_value and is_alone)):
                if not is_alone and self._last_token != "{":
                    self._left_out()
                self._gaps.add(id(self._boxes[-1].value))
        if not is_alone and self._last_token not in ("{", "[", "("):
            self._refuse("a comment behind a value may correct it")

    # -------------------------------------------------------------------------------------- tokens

    def _mark(self, mark: str) -> None:
        mark = mark if mark.isascii() else mark.translate(FULL_WIDTH)
        expected = self._expected
        if mark in "}])":
            self._close(mark)
        elif mark == "," or (mark == ";" and not self._is_in_array):
            self._comma()
        elif mark == ":":
            if expected != _COLON:
                self._refuse("not one literal" if expected == _NEXT else "a key is missing")
            self._expected = _VALUE
        else:
            if expected == _NEXT and mark != "(" and self._last == "mark" and self._is_in_array:
                self._expected = _VALUE  # only a comma is missing between two objects
            if not self._takes_value:
                self._refuse("not one literal")
            if mark == ";":
                self._refuse("not one literal")
            self._open(mark)

    def _open(self, mark: str) -> None:
        if len(self._boxes) >= MAX_DEPTH:
            self._refuse("nested too deeply", ReasonCode.LIMIT_EXCEEDED)
        value: Any = {} if mark == "{" else []
        if self._boxes:
            self._put(value)
        else:
            self._root = value
        self._boxes.append(_Box(value, {"{": "}", "[": "]", "(": ")"}[mark]))
        self._expected = _KEY if mark == "{" else _VALUE

    def _close(self, mark: str) -> None:
        boxes = self._boxes
        if self._expected == _COLON or (self._expected == _VALUE and not self._is_in_array):
            self._refuse("a key without a value")
        if not boxes or (boxes[-1].closer != mark and self._expected != _NEXT):
            self._refuse("a bracket that closes nothing")
        while boxes[-1].closer != mark:
            if all(box.closer != mark for box in boxes):
                self._refuse("a bracket that closes nothing")
            boxes.pop()
            self._is_closed_early = True
        box = boxes.pop()
        if mark == ")" and len(box.value) == 1 and not box.has_comma:
            self._refuse("not one literal")
        self._expected = _NEXT if boxes else _NOTHING

    def _comma(self) -> None:
        if self._expected not in (_NEXT, _KEY):
            self._refuse("nothing before a comma")
        if self._last_token == ";":
            self._refuse("two separators in a row")
        self._boxes[-1].has_comma = True
        self._expected = _VALUE if self._is_in_array else _KEY

    def _string(self, token: str, end: int) -> None:
        missing_separator = {_COLON: ":", _NEXT: ","}.get(self._expected)
        if self._expected == _NEXT:
            is_new_line = "\n" in self._space
            if self._is_in_array:
                is_certain = self._last == "string" and is_new_line
            else:  # behind a closed object on the same line, the key may belong to that object
                is_key = _COLON_NEXT.match(self._text, end) is not None
                is_certain = is_key and (is_new_line or self._last_token != "}")
            if is_certain:
                self._expected = _VALUE if self._is_in_array else _KEY
        if missing_separator and missing_separator in (self._last_token[-2:-1], token[1:-1].lstrip()[:1]):
            self._refuse("a separator is inside the quotes")
        if self._expected == _KEY:
            self._begin(self._decoded(token[1:-1], token[0]), is_bare=False)
        else:
            self._scalar(self._decoded(token[1:-1], token[0]))

    def _word(self, word: str) -> None:
        if ".." in word or word.rstrip(".") == "etc":
            self._left_out()
        if self._expected == _KEY and _BARE_KEY.fullmatch(word):
            self._begin(word, is_bare=True)
            return
        if word in _WORD_VALUES:
            self._scalar(_WORD_VALUES[word])
        elif _INTEGER.fullmatch(word):
            try:
                integer = int(word, 0)
                str(integer)  # Python limits the digits of an integer that it writes, too
            except ValueError:
                self._refuse("an integer of too many digits", ReasonCode.LIMIT_EXCEEDED)
            self._scalar(integer)
        elif _NUMBER.fullmatch(word) and math.isfinite(number := self._float(word)):
            self._scalar(number)
        else:
            self._refuse("not one literal")

    def _scalar(self, value: Any) -> None:
        if not self._takes_value:
            self._refuse("not one literal")
        self._put(value)

    def _begin(self, key: str, *, is_bare: bool) -> None:
        box = self._boxes[-1]
        box.key = key
        self._is_bare_key = is_bare or key.endswith(":")
        self._expected = _COLON
        if key in box.value:
            self._refuse("a key is repeated", ReasonCode.DUPLICATE_KEY)

    def _put(self, value: Any) -> None:
        if not self._boxes:
            self._refuse("not an object or array")
        box = self._boxes[-1]
        if box.closer == "}":
            box.value[box.key] = value
        else:
            box.value.append(value)
        self._expected = _NEXT

    def _decoded(self, content: str, quote: str) -> str:
        decoded = decode_string(content, quote)
        if decoded is None or (quote == "`" and "${" in content):
            self._refuse("a string that can be read in several ways")
        return decoded

    # ----------------------------------------------------------------------------------------- end

    def _ended(self, cut_string: str | None) -> Reading:
        """Return the result at the end of the text.

        Args:
            cut_string: an incomplete string at the end, from its quote on, or ``None``.
        """
        if not self._boxes:
            if self._expected != _NOTHING:
                self._refuse("a value is missing here")
            return Reading(self._root, self._is_closed_early)
        is_between = (
            self._expected in (_NEXT, _KEY)
            and (
                self._last == "string"
                or self._last_token in _WORD_VALUES
                or (self._last == "word" and self._is_after_white_space)
                or self._last_token in (",", "}", "]", ")", "\uff5d", "\uff3d")
            )
            and all(box.closer == "}" for box in self._boxes)
        )
        if not self._is_cut:
            if self._expected != _NEXT or any(box.closer != "}" for box in self._boxes):
                self._refuse("the end is missing", ReasonCode.TRUNCATED)
            return Reading(self._root, True, is_between=is_between, is_open=True)
        box = self._boxes[-1]
        if cut_string is not None:
            if self._expected == _NEXT and self._is_in_array:
                self._refuse("not one literal")
            if self._takes_value:
                self._put(self._decoded(whole_escapes(cut_string), cut_string[0]))
                key = box.key if box.closer == "}" else len(box.value) - 1
                return Reading(self._root, True, self._path, (box.value, key))
            is_between = False
        elif (
            self._expected == _NEXT
            and self._last == "word"
            and self._last_token not in _WORD_VALUES
            and not self._is_after_white_space
        ):
            del box.value[box.key if box.closer == "}" else len(box.value) - 1]
            self._expected = _VALUE
        return Reading(self._root, True, is_between=is_between)

    # ---------------------------------------------------------------------------- state and refusals

    @property
    def _takes_value(self) -> bool:
        """Return whether a value may follow. Behind a quoted key the colon may be missing."""
        return self._expected == _VALUE or (self._expected == _COLON and not self._is_bare_key)

    @property
    def _is_after_white_space(self) -> bool:
        """Whether white space of JSON precedes this token, so that the number or word before it is whole.

        Other spaces do not count: some languages write them inside numbers.
        """
        return not _WHITE_SPACE.isdisjoint(self._space)

    @property
    def _is_in_array(self) -> bool:
        return bool(self._boxes) and self._boxes[-1].closer != "}"

    @property
    def _path(self) -> str:
        path = "$"
        for box in self._boxes:
            is_last = box is self._boxes[-1]
            if box.closer == "}":
                path += "" if is_last and self._expected == _KEY else step(box.key)
            else:
                path += step(len(box.value) - (not is_last or self._expected != _VALUE))
        return path

    def _left_out(self) -> NoReturn:
        self._refuse("something is left out", ReasonCode.TRUNCATED)

    def _refuse(self, message: str, code: ReasonCode = ReasonCode.REPAIR_FAILED) -> NoReturn:
        raise UnreadableError(Violation(message, self._path, code), self._at)


# ----------------------------------------------------------------------------- growing JSON
# JSON that is still being written. Each character is looked at once, however small the pieces are.

_GROWING_TOKEN: Final = re.compile(
    r'[ \t\r\n]*+(?:(?P<mark>[{}\[\],:])|"(?P<string>[^"\\\x00-\x1f]*+)"|(?P<open>")|(?P<word>true|false|null)'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?P<fraction>(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?))(?=[ \t\r\n,\]}])"
    r"|(?P<unfinished>[-+.0-9eE]{1,400}\Z|t(?:ru?)?\Z|f(?:a(?:ls?)?)?\Z|n(?:ul?)?\Z)|(?P<end>\Z))"
)
_TO_QUOTE: Final = re.compile(r'[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+')
_JSON_WORDS: Final = {"true": True, "false": False, "null": None}


class _NotSoundError(Exception):
    """The text is not JSON without repair."""


class GrowingJSON:
    """Takes the pieces of one object or array, as long as they are JSON without repair.

    Args:
        is_exact: whether a number with a fraction keeps its digits.

    Attributes:
        is_sound: whether all so far is the beginning of one object or array, no key is repeated, and it is not too deep.
        has_changed: whether a value, or what is final, has changed since :meth:`reading`.
    """

    def __init__(self, is_exact: bool) -> None:
        self.is_sound = True
        self.has_changed = False
        self._float: Callable[[str], float] = ExactFloat if is_exact else float
        self._rest = ""  # a token whose end is not there
        self._string_parts: list[str] | None = None  # the parts of a string without its end
        self._root: Any = None
        self._boxes: list[Any] = []
        self._keys: list[str] = []  # the current key of each box, if it is an object
        self._expected = _VALUE
        self._is_new = False  # whether a bracket has been opened, and nothing has come after it

    def feed(self, piece: str) -> bool:
        """Take a piece. Returns :attr:`is_sound`."""
        try:
            self._feed(self._rest + piece)
        except (_NotSoundError, ValueError):  # an integer of too many digits, or an escape that is none
            self.is_sound = False
        return self.is_sound

    def _feed(self, text: str) -> None:
        position = 0 if self._string_parts is None else self._end_string(text, 0)
        while token := _GROWING_TOKEN.match(text, position):
            kind, position = token.lastgroup, token.end()
            if kind == "mark":
                self._mark(token[kind])
            elif kind == "string" and token[kind].isascii():
                self._end(token[kind])
            elif kind == "open" or kind == "string":
                self._string_parts = []
                if self._expected not in (_KEY, _VALUE) or not self._boxes:
                    raise _NotSoundError
                self.has_changed = self.has_changed or self._expected == _VALUE
                position = self._end_string(text, token.start("string") if kind == "string" else position)
            elif kind == "word":
                self._put(_JSON_WORDS[token[kind]])
            elif kind == "number":
                self._put(self._number(token))
            elif kind == "unfinished":
                if self._expected != _VALUE or not self._boxes:
                    raise _NotSoundError
                self._rest = token[kind]
                return
            else:
                if self._string_parts is None:
                    self._rest = ""
                return
        raise _NotSoundError

    def _number(self, token: re.Match[str]) -> float:
        if not token["fraction"]:
            return int(token["number"])
        number = self._float(token["number"])
        if not math.isfinite(number):
            raise _NotSoundError
        return number

    def _end_string(self, text: str, start: int) -> int:
        """Take the content of a string up to its end, or to the end of the text, and return where that is."""
        end = _TO_QUOTE.match(text, start).end()  # type: ignore[union-attr]
        content = text[start:end]
        is_closed = text[end : end + 1] == '"'
        if not is_closed:
            content = whole_escapes('"' + text[start:])
            if end < len(text) - (text[end:] == "\\"):
                raise _NotSoundError  # a control character
        part = content if content.isascii() and "\\" not in content else orjson.loads(f'"{content}"')
        self._string_parts.append(part)  # type: ignore[union-attr]
        if not is_closed:
            self.has_changed = self.has_changed or (self._expected == _VALUE and part != "")
            self._rest = text[start + len(content) :]
            return len(text)
        self._end("".join(self._string_parts))  # type: ignore[arg-type]
        self._string_parts = None
        return end + 1

    def _end(self, string: str) -> None:
        if self._expected == _KEY:
            if string in self._boxes[-1]:
                raise _NotSoundError
            self._keys[-1] = string
            self._expected, self._is_new = _COLON, False
        else:
            self._put(string)

    def _mark(self, mark: str) -> None:
        boxes = self._boxes
        if mark in "{[":
            if len(boxes) >= MAX_DEPTH:
                raise _NotSoundError
            box: Any = {} if mark == "{" else []
            if self._root is None:
                self._root = box
            else:
                self._put(box)
            boxes.append(box)
            self._keys.append("")
            self._expected, self._is_new = _KEY if mark == "{" else _VALUE, True
        elif mark == ":":
            if self._expected != _COLON:
                raise _NotSoundError
            self._expected = _VALUE
            return
        elif not boxes or (self._expected != _NEXT and (mark == "," or not self._is_new)):
            raise _NotSoundError
        elif mark == ",":
            self._expected = _KEY if type(boxes[-1]) is dict else _VALUE
        else:
            if type(boxes.pop()) is not (dict if mark == "}" else list):
                raise _NotSoundError
            self._keys.pop()
            self._expected, self._is_new = _NEXT if boxes else _NOTHING, False
        self.has_changed = True

    def _put(self, value: Any) -> None:
        if self._expected != _VALUE or not self._boxes:
            raise _NotSoundError
        box = self._boxes[-1]
        if type(box) is dict:
            box[self._keys[-1]] = value
        else:
            box.append(value)
        self._expected, self._is_new, self.has_changed = _NEXT, False, True

    def reading(self, note: Callable[[list[Any], list[Any]], Any]) -> Reading:
        """Return what is known so far. Later pieces do not change it.

        Args:
            note: is called with each list that is open, as it is in the result and as it is here.
        """
        self.has_changed = False
        boxes = [box.copy() for box in self._boxes]
        if not boxes:
            return Reading(self._root)
        for outer, inner, key in zip(boxes, boxes[1:], self._keys, strict=False):
            outer[key if type(outer) is dict else -1] = inner
        last_box, is_cut = boxes[-1], self._string_parts is not None and self._expected == _VALUE
        if self._string_parts is not None and is_cut:
            self._string_parts = ["".join(self._string_parts)]
            if type(last_box) is dict:
                last_box[self._keys[-1]] = self._string_parts[0]
            else:
                last_box.append(self._string_parts[0])
        for box, original in zip(boxes, self._boxes, strict=True):
            if type(box) is list:
                note(box, original)
        path = tuple(
            key if type(box) is dict else len(box) - 1 for box, key in zip(boxes, self._keys, strict=True)
        )
        reading = Reading(boxes[0], open_path=path if is_cut or self._expected == _NEXT else path[:-1])
        reading.open = frozenset(map(id, boxes))
        if is_cut:
            reading.cut, reading.cut_in = "$" + "".join(map(step, path)), (last_box, path[-1])
        return reading

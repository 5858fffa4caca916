"""Safe presentation of untrusted text: how much of it is shown, and what is never shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from crosswalk.lazy import pattern

if TYPE_CHECKING:
    from pathlib import PurePath

T = TypeVar("T")

Redact: TypeAlias = Callable[[str], str]
"""Removes secrets from a text."""

SECRET: Final = "<secret>"
"""What is shown in place of a credential."""
_KEY = r"\b(?:sk|gsk|hf|xai|ghp)[-_][\w-]{8,}|\bAIza[\w-]{20,}|\bAKIA\w{12,}|\beyJ[\w-]+\.[\w.-]+"
# The text before a secret stays, as group 1: a scheme of authorization, a name, or the start of a URL.
_SECRET = pattern(
    r"((?:\bauthorization[\"']?\s*[:=]\s*[\"']?)?\b(?:bearer|basic)\s+"
    r"|(?<![\w.-])(?P<name>(?:\w+ )?[\w.-]*(?:key|token|secret|password|passwd|pwd|passphrase|passcode|credential|jwt)s?)"
    r"(?:\s+provided)?[\"']?\s*[:=]\s*[\"']?"
    r"|://(?=[^\s/@]+@))"
    r"(?P<value>(?:(?:bearer|basic)\s+)?[^\s\"',;@]+)"
    rf"|{_KEY}",
    re.IGNORECASE,
)
# Absolute paths and those under a home directory, but not the path of a URL.
_PATH = pattern(
    r"file://[^\s\"']+"
    r"|(?<![\w:/.])(?:/(?:[\w.+@-]+/)+[\w.+@-]*|~/[\w.+@/-]+)"
    r"|(?:\b[a-z]:\\|\\\\)[^\s\"'<>|:*?]+",
    re.IGNORECASE,
)


def counted(number: float, noun: str, nouns: str = "") -> str:
    """``1 part``, ``2 parts``, ``10,000 parts``.

    Args:
        number: the number.
        noun: the noun in the singular.
        nouns: the plural, if it is not *noun* with an ``s``.
    """
    figure = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{figure} {noun if number == 1 else nouns or f'{noun}s'}"


def holds_key(text: str) -> bool:
    """Whether *text* contains a key or token of a well-known kind."""
    return re.search(_KEY, text) is not None


# ----------------------------------------------------------------------------------- names
# The one table of the names of credentials. A name is read by whole words: "secretary" and "monkey" are in no row.


class CredentialName(NamedTuple):
    """A row of :data:`CREDENTIAL_NAMES`: a name that ends with one of these words is that of a credential.

    Attributes:
        last: the last words, in the singular and the plural. Numbers and :data:`ENDINGS` may follow.
        after: if there are any, the word before must be one of these. ``-`` stands for no word.
        never_after: the word before must be none of these.
        in_head_alone: whether this holds in headers and in the query of a URL alone, and not in JSON.
    """

    last: str
    after: str = ""
    never_after: str = ""
    in_head_alone: bool = False


_OWNERS: Final = (
    "access account api app application auth aws azure client consumer encryption functions hmac master openai private "
    "secret security service session shared signing ssh sso subscription webhook"
)
_USERS: Final = "admin bearer bot csrf database db id oauth personal refresh root user xsrf"
ENDINGS: Final = ("value", "hash", "id", "base64", "b64")
"""Words behind the name of a credential that leave it one, such as ``api_key_id``. So do numbers."""
CREDENTIAL_NAMES: Final = (
    CredentialName(
        "auth authentication authorization bearer cookie cookies credential credentials jwt oauth"
    ),
    CredentialName("pass passcode passphrase passwd password passwords pwd secret secrets"),
    CredentialName(
        "token", never_after="audio bos cls end eos image mask pad sep special start stop unk video"
    ),
    CredentialName("tokens", after=f"{_OWNERS} {_USERS}"),
    CredentialName("key keys", after=_OWNERS),
    CredentialName("string", after="connection secret"),
    CredentialName("session", after="mcp"),
    CredentialName("session", in_head_alone=True),
    CredentialName("key", never_after="cache idempotency partition public routing", in_head_alone=True),
    CredentialName("sig signature", in_head_alone=True),
    CredentialName("code", after="- auth authorization", in_head_alone=True),
)
"""The names of credentials. Where a row has to choose between too much and too little, it takes too much."""
JOINED_WORDS: Final = (
    f"{_OWNERS} {_USERS}".split(),
    ["key", "keys", "token", "tokens", "secret", "secrets", "password", "passwd"],
)
"""Words that make the name of a credential if one of the first is written together with one of the second."""
_NAME_WORD = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]")
_JOINED = pattern(rf"(?:{'|'.join(JOINED_WORDS[0])})(?:{'|'.join(JOINED_WORDS[1])})\Z")
_LONGEST_NAME = 80


@lru_cache(1024)  # the same few names occur again and again
def names_credential(name: str, *, in_head: bool = False) -> bool:
    """Whether a field, header, cookie or parameter called *name* holds a credential, by :data:`CREDENTIAL_NAMES`.

    Args:
        name: the name. It is split at everything but letters and digits, and before capitals.
        in_head: whether it is a header or in the query of a URL.
    """
    words = ["-", *[word.lower() for word in _NAME_WORD.findall(name[-_LONGEST_NAME:])]]
    while words[-1].isdigit() or words[-1] in ENDINGS:
        words.pop()
    last, before = words[-1], words[-2:-1]
    return _JOINED.search(last) is not None or any(
        last in row.last.split()
        and (not row.after or before[0] in row.after.split())
        and before[0] not in row.never_after.split()
        and (in_head or not row.in_head_alone)
        for row in CREDENTIAL_NAMES
    )


def _without_secret(match: re.Match[str]) -> str:
    if match["name"] is None or names_credential(match["name"]):
        return f"{match[1] or ''}{SECRET}"
    return match[1] + _SECRET.sub(_without_secret, match["value"])


# -------------------------------------------------------------------------------- messages
# The text of a message, and what a terminal or a log may show.


def clean_message(text: str, limit: int = 500) -> str:
    """*text* for a message: without secrets, file paths and control characters, cut after *limit* characters.

    A provider's error text is untrusted, and may quote headers or paths of its own machine.
    """
    head = text[: 4 * limit]  # the rest is cut anyway
    head = _PATH.sub("<path>", _SECRET.sub(_without_secret, head))
    if not head.isprintable():
        head = "".join([c if c.isprintable() else " " for c in head])
    head = " ".join(head.split())
    return head if len(head) <= limit and len(text) <= 4 * limit else f"{head[: limit - 1]}…"


@lru_cache(maxsize=256)
def clean_reason(text: str) -> str:
    """Return *text*, a reason that a program gives again and again, as :func:`clean_message` does. It is remembered."""
    return clean_message(text, 200)


# C1, DEL, marks of direction and line separators, which JSON allows in strings and a terminal may obey.
_HARMFUL_CHARACTERS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
HARMFUL_IN_JSON = pattern(f"[{_HARMFUL_CHARACTERS}]")
"""The characters that JSON text may contain and a terminal may obey."""
_HARMFUL = pattern(f"[\x00-\x1f\ud800-\udfff{_HARMFUL_CHARACTERS}]")
_HARMFUL_IN_LINES = pattern(f"[\x00-\x08\x0b-\x1f\ud800-\udfff{_HARMFUL_CHARACTERS}]")


def harmless(text: str, *, lines: bool = False) -> str:
    """*text* with escape sequences, other control characters and marks of direction as ``\\uXXXX``.

    Args:
        text: the untrusted text.
        lines: whether line feeds and tabs stay. Otherwise the result is one line.
    """
    return (_HARMFUL_IN_LINES if lines else _HARMFUL).sub(escaped, text)


def escaped(match: re.Match[str]) -> str:
    """The character that was *match* as ``\\uXXXX``."""
    return f"\\u{ord(match[0]):04x}"


def json_type_name(value: object) -> str:
    """The JSON word for the type of *value*: ``null``, ``boolean``, ``number`` and so on, or its Python type's name."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list | tuple):
        return "array"
    return "object" if isinstance(value, Mapping) else type(value).__name__


DEFAULT_CONTENT_LIMIT = 200
_content_limit = DEFAULT_CONTENT_LIMIT


def set_content_limit(characters: int) -> None:
    """Set the number of characters of content that one ``repr`` or ``str`` shows."""
    global _content_limit
    _content_limit = characters


def shortened(text: str) -> str:
    """*text*, cut to the content limit."""
    return _cut(text, _content_limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"


_Shown: TypeAlias = Sequence[tuple[str, str]]
_summaries: Final[ContextVar[list[tuple[str, _Shown]] | None]] = ContextVar("summaries", default=None)
"""A dict that collects each summary with the fields in it, or ``None`` while nobody collects."""


_FACTS: Final = frozenset(
    [
        "id",
        "index",
        "name",
        "type",
        "kind",
        "role",
        "model",
        "model_id",
        "provider",
        "provider_id",
        "finish_reason",
        "raw_finish_reason",
        "usage",
        "code",
        "status",
        "event_type",
        "outcome",
        "choice",
        "media_type",
        "tool_call_id",
    ]
)
"""The fields of a value that hold no content."""
_WORD = pattern(r"[\w.:/@+-]{1,64}\Z", re.ASCII)


def _is_fact(field: str, value: object) -> bool:
    """Whether *value* is shown whole: a number, or a word in a field that holds no content."""
    if isinstance(value, str):
        return field in _FACTS and _WORD.match(value) is not None
    return isinstance(value, int | float)


def summary(name: str, fields: Iterable[tuple[str, Any]]) -> str:
    """``name(field=value, …)`` without empty values. All content in it together stays within the content limit."""
    remaining = _content_limit
    parts = []
    for field, value in fields:
        if value is None or value == "" or value == () or value == {}:
            continue
        if _is_fact(field, value):
            parts.append((field, repr(str(value)) if isinstance(value, str) else repr(value)))
            continue
        if isinstance(value, str):
            text = repr(value[: max(remaining, 0) + 1])  # one more, to detect a cut
            shown_text = _cut(text[1:-1], remaining)
            parts.append((field, f"{text[0]}{shown_text}{text[0]}"))
        else:
            shown_text = _cut(repr(value), remaining)
            parts.append((field, shown_text))
        remaining -= len(shown_text)
    message = f"{name}({', '.join(f'{field}={text}' for field, text in parts)})"
    summaries = _summaries.get()
    if summaries is not None:
        summaries.append((message, parts))
    return message


def short_repr(*fields: str) -> Callable[[Any], str]:
    """A ``__repr__`` that shows *fields* within the content limit."""

    def __repr__(self: Any) -> str:
        return summary(type(self).__name__, [(field, getattr(self, field)) for field in fields])

    return __repr__


def shown_url(url: str) -> str:
    """Return *url* without its possible secrets: user, password and query."""
    head, _, _ = url.partition("?")
    scheme, separator, remainder = head.rpartition("://")
    host, slash, path = remainder.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


class _Said(str):
    """A text whose ``repr`` is the text itself."""

    def __repr__(self) -> str:
        return str(self)


def brief(cls: type[T]) -> type[T]:
    """A class decorator for rich, its tracebacks with locals, and notebooks: they show the ``repr`` of a value and no more.

    Otherwise they would show the fields of an attrs class with their whole content.
    """
    decorated: Any = cls
    decorated.__rich_repr__ = _rich_repr
    decorated._repr_html_ = _html_repr
    return cls


def _shown(value: object) -> _Shown:
    summaries: list[tuple[str, _Shown]] = []
    token = _summaries.set(summaries)
    try:
        text = repr(value)
    finally:
        _summaries.reset(token)
    for summary_text, shown_fields in summaries[-1:]:
        if summary_text is text:  # else it is one of the values inside
            return shown_fields
    field_text = text.partition("(")[2].removesuffix(")")
    return (("", field_text),) if field_text else ()


def _rich_repr(self: object) -> Iterator[Any]:
    for field, text in _shown(self):
        yield (field, _Said(text)) if field else _Said(text)


def _html_repr(self: object) -> str:
    from html import escape  # seldom needed

    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(field)}</th>"
        f"<td style='text-align:left'>{escape(harmless(text))}</td></tr>"
        for field, text in _shown(self)
    )
    return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


_log_content = False


def set_log_content(allowed: bool) -> None:
    """Allow log records to contain a model's text, within the content limit. By default they do not."""
    global _log_content
    _log_content = allowed


def may_log_content() -> bool:
    """Whether log records may contain a model's text."""
    return _log_content


_ARITY: Final = pattern(r"[\w.<>]+\(\) (takes|missing) .*")
"""The message of a call with a wrong number of arguments, which holds only names of code."""


def where_raised(error: BaseException) -> str:
    """Return where a plugin's code raised *error*: the last line outside Crosswalk, and what a wrong call says of itself."""
    import traceback  # seldom needed, and long to load
    from pathlib import PurePath

    package_folder = PurePath(__file__).parent
    lines = [(line, PurePath(line.filename)) for line in traceback.extract_tb(error.__traceback__)]
    last_line, file = next(
        (pair for pair in reversed(lines) if not _is_in(package_folder, pair[1])), lines[-1]
    )
    is_arity = isinstance(error, TypeError) and _ARITY.fullmatch(str(error))
    return f"{f' ({error})' if is_arity else ''} in {last_line.name}, line {last_line.lineno} of {file.name}"


def _is_in(folder: PurePath, file: PurePath) -> bool:
    return folder in file.parents or file.name.startswith("<attrs generated")


def nearest(word: str, known: Iterable[str]) -> str:
    """The one of the *known* words that is most similar to *word*, or ``""`` if none is similar."""
    import difflib  # seldom needed

    return next(iter(difflib.get_close_matches(word.lower(), list(known), n=1)), "")


def meant(word: str, known: Iterable[str]) -> str:
    """A suggestion after an unknown *word*: the nearest of the *known* ones, or nothing if none is near."""
    suggestion = nearest(word, known)
    return f", did you mean {suggestion!r}?" if suggestion else ""


def plain_name(word: str) -> str:
    """Return the name *word* in lower case, with ``_`` for every separator."""
    return word.strip().lower().replace("-", "_").replace(".", "_").replace(" ", "_")

"""JSON without its credentials: the texts below the name of one, in objects, lists, pairs and texts that hold JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, Final

from crosswalk.lazy import pattern
from crosswalk.text import CREDENTIAL_NAMES, ENDINGS, JOINED_WORDS, SECRET, names_credential
from crosswalk.types.json import dump_json, load_json

_HEADS: Final = frozenset({"header", "headers", "query"})
_NAMES_OF_PAIR: Final = ("name", "key", "header")
_VALUES_OF_PAIR: Final = frozenset({"value", "values"})
_SCHEMA_TYPES: Final = frozenset({
    "array", "bool", "boolean", "dict", "float", "int", "integer", "list", "null", "number", "object",
    "str", "string",
})  # fmt: skip
_SCHEMA_WORDS: Final = frozenset({
    "$ref", "additionalProperties", "allOf", "anyOf", "deprecated", "description", "enum", "format",
    "items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "nullable", "oneOf",
    "optional", "pattern", "properties", "readOnly", "required", "strict", "title", "type", "writeOnly",
})  # fmt: skip
_SHORTEST_JSON: Final = 12
_ESCAPED_LETTER: Final = pattern(rb"\\u00[2-7]")


def _backwards(texts: Iterable[str]) -> str:
    return "|".join(sorted({re.escape(text[::-1]) for text in texts}))


def _ends_backwards() -> Iterator[str]:
    """Yield patterns of the last words of all names of credentials, backwards."""
    for row in CREDENTIAL_NAMES:
        words = row.after.split()
        before = rf"[\W_]*(?:{_backwards(words)})" if words and "-" not in words else ""
        yield f"(?:{_backwards(row.last.split())}){before}"
    first_words, last_words = JOINED_WORDS
    yield f"(?:{_backwards(last_words)})(?:{_backwards(first_words)})"


_NAME_BACKWARDS: Final = pattern(
    rf"[\"'](?:[^a-z\"':,\[{{]|{_backwards(ENDINGS)})*+(?:{'|'.join(_ends_backwards())})".encode()
)
"""The end of a JSON text that may be the name of a credential, from its last letter on, which finds it fastest."""
_PAIR_IN_TEXT: Final = pattern(
    r"(?P<start>(?P<quote>\\{0,7}[\"'])(?P<name>[^\"'\\\n]{1,80})(?P=quote)\s*:\s*)"
    r"(?P<mark>\\{0,7}[\"'])(?P<value>.*?)(?<!\\)(?P=mark)",
    re.DOTALL,
)
"""A name and its text, amid text that is no JSON."""


_ROOTS: Final = (
    *(b"auth", b"bearer", b"cookie", b"credential", b"jwt", b"pass", b"pwd", b"secret", b"key", b"session"),
    *(b"connection", b"header", b"query"),
)
"""What is in each name of a credential, unless that is a token, or in the name of what holds it, such as headers."""
_TOKEN: Final = pattern(rb'token(?!s\\*"\s*:\s*\d)')
"""A token, which is not a number of tokens as in ``max_tokens``."""


_URL: Final = pattern(rb"://[^\s\"\\]*[?@]")
_URL_IN_TEXT: Final = pattern(r"://[^\s\"'<>\\]+")
_USER_OF_URL: Final = pattern(r"(?<=://)[^/@?#]+(?=@)")
_PARAMETER_OF_URL: Final = pattern(r"(?<=[?&])([^=&#]{1,80})=([^&#]+)")


def may_hold_credential(text: bytes) -> bool:
    """Whether the JSON *text* may have a credential: it contains such a name, or a name with an escape."""
    letters = text.lower()
    has_root = (
        any(map(letters.__contains__, _ROOTS)) or _TOKEN.search(letters) is not None
    )  # mostly false, and fast
    if has_root and _NAME_BACKWARDS.search(letters[::-1]) is not None:
        return True
    if b"://" in letters and _URL.search(letters) is not None:
        return True
    return b"\\u00" in text and _ESCAPED_LETTER.search(text) is not None


def without_credentials(value: Any) -> Any:
    """Return *value*, plain JSON, with :data:`SECRET` for each credential in it."""
    document = [deepcopy(value)]
    take_credentials(document, set())
    return document[0]


def take_credentials(document: list[Any], credentials: set[str]) -> bool:
    """Replace the credentials in the JSON *document* by :data:`SECRET`, and add them to *credentials*.

    A credential is a text anywhere below the name of one, or the value of a pair with such a name, such as
    ``{"name": "Authorization", "value": …}``. Texts that hold JSON or URLs are searched too. The JSON Schema of a
    parameter with such a name stays.

    Returns whether there are any.
    """
    has_any = False
    containers: list[tuple[Any, bool, bool]] = [(document, False, False)]
    while containers:
        container, is_secret, in_head = containers.pop()
        is_object = type(container) is dict
        has_secret_value = _is_pair_of_credential(container, in_head)
        for key, value in list(container.items() if is_object else enumerate(container)):
            is_secret_value, is_head = is_secret, in_head
            if is_object:
                is_secret_value |= names_credential(key, in_head=in_head)
                is_secret_value |= has_secret_value and key in _VALUES_OF_PAIR
                is_head = in_head or key.rpartition("_")[2].lower() in _HEADS
            elif has_secret_value and key == 1:
                is_secret_value = True
            kind = type(value)
            if kind is dict or kind is list:
                is_secret_value &= is_secret or not _is_schema(value)
                containers.append((value, is_secret_value, is_head))
            elif kind is str and is_secret_value:
                credentials.add(value)
                container[key], has_any = SECRET, True
            elif kind is str and len(value) > _SHORTEST_JSON and may_hold_credential(value.encode()):
                text = _text_without_credentials(value, credentials)
                if text != value:
                    container[key], has_any = text, True
    return has_any


def _is_pair_of_credential(container: Any, in_head: bool) -> bool:
    """Whether *container* is a name of a credential and its value: an object, or in headers also a list."""
    if type(container) is dict:
        names = [container.get(name) for name in _NAMES_OF_PAIR]
    else:
        names = container[:1] if in_head and len(container) == 2 else []
    return any(type(name) is str and names_credential(name, in_head=in_head) for name in names)


def _is_schema(value: Any) -> bool:
    """Whether *value* describes a field. One that has an example or a default may tell a credential, and is no schema."""
    if type(value) is not dict or not value.keys() <= _SCHEMA_WORDS:
        return False
    types = value.get("type")
    return "type" not in value or all(
        type(one) is str and one.lower() in _SCHEMA_TYPES
        for one in (types if type(types) is list else [types])
    )


def _text_without_credentials(text: str, credentials: set[str]) -> str:
    """Return *text* without its credentials: as JSON, as lines of JSON, by their names in quotes, or in its URLs."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        try:
            document = [load_json(text)]
            return dump_json(document[0]).decode() if take_credentials(document, credentials) else text
        except (ValueError, TypeError):  # no JSON, or too deep to be written
            pass
    if "\n" in text.strip():
        return "\n".join([_text_without_credentials(line, credentials) for line in text.split("\n")])

    def replaced(pair: re.Match[str]) -> str:
        if not names_credential(pair["name"]):
            return pair[0]
        credentials.add(pair["value"])
        return f"{pair['start']}{pair['mark']}{SECRET}{pair['mark']}"

    return _without_credentials_of_urls(_PAIR_IN_TEXT.sub(replaced, text), credentials)


def _without_credentials_of_urls(text: str, credentials: set[str]) -> str:
    """Return *text* without the users and passwords of its URLs, and the credentials in their queries."""

    def replaced_user(user: re.Match[str]) -> str:
        credentials.update(user[0].split(":", 1))
        return SECRET

    def replaced_value(parameter: re.Match[str]) -> str:
        name, value = parameter.groups()
        if not names_credential(name, in_head=True):
            return parameter[0]
        credentials.add(value)
        return f"{name}={SECRET}"

    return _URL_IN_TEXT.sub(
        lambda url: _PARAMETER_OF_URL.sub(replaced_value, _USER_OF_URL.sub(replaced_user, url[0])), text
    )

"""Redacts the credentials of an exchange in its URL, its headers and its bodies."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from crosswalk import from_json, to_json
from crosswalk.service import (
    SECRET,
    encoded_forms,
    holds_key,
    may_hold_credential,
    names_credential,
    take_credentials,
)
from crosswalk.types import ChatResponse
from crosswalk.types.json import dump_json, load_json
from crosswalk_observe.exchange import WatchedExchange

_MIN_LENGTH: Final = 12
"""Shorter values are words, such as the ``EMPTY`` sent to servers without keys, and not credentials."""
_LONGEST_VALUE: Final = 16_384
"""The characters of a credential that are looked for elsewhere in the exchange."""
_MOST_JSON_VALUES: Final = 50
"""The number of credentials in JSON that are looked for elsewhere in the exchange, the longest first."""
_HARMLESS_PARAMETER: Final = re.compile(
    r"\b(?:algorithm|charset|headers|qop|realm|signedheaders|uri)=(?:\"[^\"]*\"|[^\s,;]*)", re.IGNORECASE
)
"""A parameter of an ``Authorization`` that is no credential."""
_BETWEEN_PARTS: Final = re.compile(r"[\s,;:=&.\"'{}()<>\[\]]+")
_COOKIE: Final = re.compile(r"=(\"[^\"]*\"|[^;\s]*)")
_SET_COOKIE: Final = re.compile(r"(?:^|, )(?:([^=;,\s]+)=)?(\"[^\"]*\"|[^;,\s]*)")
_PLAIN_WORDS: Final = re.compile(
    r"(?:[A-Z]?[a-z]{0,10}|[A-Z]{1,11})(?:[-_. ](?:[A-Z]?[a-z]{0,10}|[A-Z]{1,11}))*"
)
"""Words of at most 11 letters: what a cookie says if it is no credential, such as ``en-US-locale-x``."""
_ESCAPE: Final = re.compile(rb"(\\+)u00([2-7][0-9a-fA-F])")


class Secrets:
    """Redacts the credentials of *exchange*: those of its requests, and the cookies that its answers set."""

    def __init__(self, exchange: WatchedExchange) -> None:
        self._content = content = exchange.content
        self._parts = urlsplit(exchange.url)
        query = self._parts.query
        self._query = parse_qsl(query, keep_blank_values=True) if query else []
        self._secret_pairs, values = _credentials_sent(exchange.request_headers, self._parts, self._query)
        if "set-cookie" in exchange.headers:
            values |= _cookies_set(exchange.headers["set-cookie"])
        for hop in exchange.hops:
            parts = urlsplit(hop.url)
            values |= _credentials_sent(hop.request_headers, parts, parse_qsl(parts.query))[1]
            values |= _cookies_set(hop.answer_headers.get("set-cookie", ""))
        self._forms = _known_forms_of(values)
        if content is not None and may_hold_credential(content):
            self._content, json_secrets = _without_json_secrets(content)
            json_values = sorted(_credentials_in([("", value) for value in json_secrets]), key=len)
            self._forms += _forms_of(json_values[-_MOST_JSON_VALUES:])

    def url(self) -> str:
        """Return the URL without user, password, fragment and the secrets of its query."""
        parts = self._parts
        query = [
            (name, SECRET if (name, value) in self._secret_pairs else value) for name, value in self._query
        ]
        netloc = parts.netloc.rpartition("@")[2]
        path = self._redact_text(parts.path)
        return urlunsplit(
            (parts.scheme, netloc, path, urlencode(query, safe="<>/:", quote_via=quote, errors="replace"), "")
        )

    def content(self) -> bytes | None:
        """Return the body of the request without credentials."""
        return None if self._content is None else self.redact(self._content)

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return *headers*, of the request or the answer, without credentials."""
        redacted_headers = {**headers, **{name: SECRET for name, _ in _secret_pairs(headers.items())}}
        if self.appear_in("\n".join(redacted_headers.values()).encode(errors="replace")):
            redacted_headers = {name: self._redact_text(value) for name, value in redacted_headers.items()}
        return redacted_headers

    def redact(self, data: bytes, *, is_cut: bool = False) -> bytes:
        """Return *data* with the credentials of the request replaced, and if it *is_cut* what begins one at a text's end."""
        if self._forms and self._appear_in_escapes(data):
            data = _ESCAPE.sub(_unescaped, data)
        for form in self._forms_in(data):
            data = re.sub(re.escape(form), SECRET.encode(), data, flags=re.IGNORECASE)
        if not is_cut:
            return data
        starts = b"|".join({re.escape(form[:_MIN_LENGTH]) for form in self._forms})
        return re.sub(rb"(?:%s)[^\"]*" % starts, self._without_cut_one, data, flags=re.IGNORECASE)

    def _without_cut_one(self, start: re.Match[bytes]) -> bytes:
        return SECRET.encode() if any(form.startswith(start[0].lower()) for form in self._forms) else start[0]

    def _redact_text(self, text: str) -> str:
        return self.redact(text.encode(errors="replace")).decode()

    def appear_in(self, data: bytes, *, is_cut: bool = False) -> bool:
        """Whether *data* contains a credential of the request, or if it *is_cut* ends in the beginning of one."""
        end = data[-_MIN_LENGTH:].lower()
        return (
            next(self._forms_in(data), None) is not None
            or (bool(self._forms) and self._appear_in_escapes(data))
            or (is_cut and len(end) == _MIN_LENGTH and end in b"\n".join(self._forms))
        )

    def _forms_in(self, data: bytes) -> Iterator[bytes]:
        """Return the forms of credentials that *data* contains, in any case of the letters."""
        # Without a generator, which is slower.
        return filter(data.lower().__contains__, self._forms) if self._forms else iter(())

    def _appear_in_escapes(self, data: bytes) -> bool:
        """Whether *data* has a credential with letters written as ``\\u0051``, which no encoder does of itself."""
        if b"\\u00" not in data:
            return False
        return next(self._forms_in(_ESCAPE.sub(_unescaped, data)), None) is not None

    def appear_in_texts(self, response: ChatResponse, *, is_cut: bool) -> bool:
        """Whether a text of *response* contains a credential of the request, or if it *is_cut* the beginning of one."""
        if not self._forms:
            return False
        texts = [response.message.content, response.refusal, *[part.content for part in response.segments]]
        for choice in response.alternatives:
            texts += [choice.message.content, *[part.content for part in choice.segments]]
        text_bytes = [text.encode() for text in texts if type(text) is str]
        return self.appear_in(b"\n".join(text_bytes)) or (
            is_cut and any(self.appear_in(text, is_cut=True) for text in text_bytes)
        )

    def redact_response(self, response: ChatResponse, *, is_cut: bool) -> ChatResponse:
        """Return *response* with the credentials of the request replaced, and without its single tokens."""
        plain_response: Any = load_json(self.redact(to_json(response), is_cut=is_cut))
        for choice in (plain_response, *plain_response.get("alternatives", ())):
            choice.pop("logprobs", None)
        return from_json(dump_json(plain_response), ChatResponse)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return the letter of *escape* as JSON of the same depth writes it."""
    letter, depth = bytes.fromhex(escape[2].decode()), len(escape[1])
    if letter == b'"':
        return b"\\" * (2 * depth - 1) + letter
    return letter * (2 * depth) if letter == b"\\" else letter


def _without_json_secrets(content: bytes) -> tuple[bytes | None, set[str]]:
    """Return the JSON *content* without its credentials, and these. It is ``None`` if JSON cannot be written so deep."""
    secrets: set[str] = set()
    try:
        document = [load_json(content)]
    except ValueError:
        return content, secrets
    if not take_credentials(document, secrets):
        return content, secrets
    try:
        return dump_json(document[0]), secrets
    except TypeError:
        return None, secrets


def _credentials_sent(
    headers: Mapping[str, str], parts: SplitResult, query: Iterable[tuple[str, str]]
) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """Return the pairs (name, value) of *headers* and *query* with a credential, and the credentials of a request."""
    pairs = [pair for pair in headers.items() if pair[0] != "content-length"]  # it differs each time
    secret_pairs, values = _credentials_of((*pairs, *query))
    if "@" in parts.netloc:
        values |= {unquote(word or "") for word in (parts.password, parts.username)}
    return secret_pairs, values


@lru_cache(64)  # most exchanges have the headers of the one before
def _credentials_of(pairs: tuple[tuple[str, str], ...]) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """Return the *pairs* (name, value) with a credential, and the credentials in them."""
    secret_pairs = _secret_pairs(pairs)
    return secret_pairs, _credentials_in(secret_pairs)


def _forms_of(values: Iterable[str]) -> tuple[bytes, ...]:
    """Return the forms in which the credentials *values* may appear, the longest first, in lower case."""
    long_values = [value[:_LONGEST_VALUE] for value in values if len(value) >= _MIN_LENGTH]
    texts = {form for value in long_values for form in (value, *encoded_forms(value))}
    forms = {text.encode(errors="replace").lower() for text in texts if len(text) >= _MIN_LENGTH}
    return tuple(sorted(forms, key=len, reverse=True))


_known_forms_of: Final = lru_cache(64)(_forms_of)


def _credentials_in(secret_pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the credentials in the values of *secret_pairs*, of headers or query parameters."""
    credentials: set[str] = set()
    for name, value in secret_pairs:
        if value.startswith("AWS4-"):  # it also contains header names and the region
            credentials.update(re.findall(r"(?:Credential|Signature)=([^\s,/]+)", value))
            continue
        if name == "cookie":
            words = {one.strip('"') for one in _COOKIE.findall(value)}
        else:
            words = {value.strip(), *re.split(r"[\s,]+", value), *[word.strip(",") for word in value.split()]}
        if value[:6].lower() == "basic ":
            words |= _basic_credentials(value[6:])
        credentials |= _with_parts(words)
    return frozenset(credentials)


@lru_cache(64)
def _cookies_set(header: str) -> frozenset[str]:
    """Return the credentials in *header*, a ``Set-Cookie``: values with such a name, and those that are no plain words."""
    values = [(name, value.strip('"')) for name, value in _SET_COOKIE.findall(header)]
    return _with_parts(
        value
        for name, value in values
        if names_credential(name, in_head=True) or not _PLAIN_WORDS.fullmatch(value)
    )


def _with_parts(values: Iterable[str]) -> frozenset[str]:
    """Return *values*, also without their URL encoding, and the parts of them that are no plain words."""
    whole = {form for value in values for form in (value, unquote(value))}
    parts = {part for value in whole for part in _BETWEEN_PARTS.split(_HARMLESS_PARAMETER.sub(" ", value))}
    return frozenset(whole | {part for part in parts if not _PLAIN_WORDS.fullmatch(part)})


def _basic_credentials(value: str) -> set[str]:
    """Return the user and the password in *value*, of an ``Authorization: Basic``."""
    letters = value.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text_bytes = b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except ValueError:
        return set()
    texts = [text_bytes.decode("latin-1"), text_bytes.decode(errors="replace")]
    return {part for text in texts if ":" in text for part in (text, *text.split(":", 1))}


def _secret_pairs(pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the *pairs* (name, value) with a credential as the value."""
    secret_pairs: list[tuple[str, str]] = []
    other_pairs: list[tuple[str, str]] = []
    for pair in pairs:
        (secret_pairs if names_credential(pair[0], in_head=True) else other_pairs).append(pair)
    if holds_key("\n".join([value for _, value in other_pairs])):  # usually false, so search all at once
        secret_pairs += [pair for pair in other_pairs if holds_key(pair[1])]
    return secret_pairs

"""Redacts the credentials of an exchange in its URL, its headers and its bodies."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from crosswalk import from_json, to_json
from crosswalk.service import encoded_forms, holds_key
from crosswalk.types import ChatResponse
from crosswalk.types.json import dump_json, load_json

PLACEHOLDER: Final = "<secret>"
_MIN_LENGTH: Final = 12
"""Shorter values are words, such as the ``EMPTY`` sent to servers without keys, and not credentials."""
_SECRET_NAME: Final = re.compile(
    r"auth|token|secret|key|cookie|session|signature|credential|passw|\bsig\b|\bcode\b|^x-amz-security|subscription",
    re.IGNORECASE,
)
_JSON_SECRET_WORDS: Final = (
    *(b"authorization", b"apikey", b"passw", b"secret"),
    *(b"authtoken", b"accesstoken", b"bearertoken", b"securitytoken"),
)
"""In names of credentials in the JSON of a request, such as those that the server passes on to its tools."""
_MOST_JSON_VALUES: Final = 50
"""The number of credentials in JSON that are looked for elsewhere in the exchange, the longest first."""
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[2-7]")
_COOKIE_START: Final = re.compile(r"(?:^|, )[^=;,\s]+=([^;,\s]+)")
_HARMLESS_NAME: Final = re.compile(r"ratelimit|^access-control-", re.IGNORECASE)


class Secrets:
    """Redacts the credentials of one exchange.

    Args:
        url: the URL of the request.
        headers: the headers of the request by lower-case name.
        content: the body of the request, or ``None`` if it is unknown.
        answer_headers: the headers of the answer, in the same form. The cookies that they set are credentials too.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        answer_headers: Mapping[str, str] | None = None,
    ) -> None:
        self._content = content
        self._parts = parts = urlsplit(url)
        self._query = parse_qsl(parts.query, keep_blank_values=True) if parts.query else []
        pairs = [pair for pair in headers.items() if pair[0] != "content-length"]  # it differs each time
        self._secret_pairs, values = _credentials_of((*pairs, *self._query))
        if "@" in url:
            values |= {unquote(word or "") for word in (parts.password, parts.username)}
        self._forms = _known_forms_of(values)
        if content is not None and _may_hold_json_secret(content):
            self._content, json_secrets = _without_json_secrets(content)
            json_values = sorted(_credentials_in([("", value) for value in json_secrets]), key=len)
            self._forms += _forms_of(json_values[-_MOST_JSON_VALUES:])
        if answer_headers is not None and "set-cookie" in answer_headers:
            self._forms += tuple(
                value.strip('"').encode()
                for value in _COOKIE_START.findall(answer_headers["set-cookie"])
                if len(value.strip('"')) >= _MIN_LENGTH
            )

    def url(self) -> str:
        """Return the URL without user, password, fragment and the secrets of its query."""
        parts = self._parts
        query = [
            (name, PLACEHOLDER if (name, value) in self._secret_pairs else value)
            for name, value in self._query
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
        redacted_headers = {**headers, **{name: PLACEHOLDER for name, _ in _secret_pairs(headers.items())}}
        if self.appear_in("\n".join(redacted_headers.values()).encode(errors="replace")):
            redacted_headers = {name: self._redact_text(value) for name, value in redacted_headers.items()}
        return redacted_headers

    def redact(self, data: bytes) -> bytes:
        """Return *data* with the credentials of the request replaced."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, PLACEHOLDER.encode())
        return data

    def _redact_text(self, text: str) -> str:
        return self.redact(text.encode(errors="replace")).decode()

    def appear_in(self, data: bytes) -> bool:
        """Whether *data* contains a credential of the request."""
        return any(map(data.__contains__, self._forms))  # without a generator, which is slower

    def appear_in_texts(self, response: ChatResponse) -> bool:
        """Whether a text of *response* contains a credential of the request."""
        if not self._forms:
            return False
        texts = [response.message.content, response.refusal, *[part.content for part in response.segments]]
        for choice in response.alternatives:
            texts += [choice.message.content, *[part.content for part in choice.segments]]
        return self.appear_in("\n".join([text for text in texts if type(text) is str]).encode())

    def redact_response(self, response: ChatResponse) -> ChatResponse:
        """Return *response* with the credentials of the request replaced, and without its single tokens."""
        plain_response: Any = load_json(self.redact(to_json(response)))
        for choice in (plain_response, *plain_response.get("alternatives", ())):
            choice.pop("logprobs", None)
        return from_json(dump_json(plain_response), ChatResponse)


def _may_hold_json_secret(text: bytes) -> bool:
    """Whether the JSON *text* may have a credential: it contains such a name, or a name with an escape."""
    return _names_json_secret(text) or _ESCAPED_LETTER.search(text) is not None


def _names_json_secret(text: bytes) -> bool:
    """Whether *text* contains the name of a credential."""
    letters = text.lower().translate(None, b"-_")
    return any(map(letters.__contains__, _JSON_SECRET_WORDS))


def _without_json_secrets(content: bytes) -> tuple[bytes | None, set[str]]:
    """Return the JSON *content* without its credentials, and these. It is ``None`` if JSON cannot be written so deep."""
    secrets: set[str] = set()
    try:
        document = [load_json(content)]
    except ValueError:
        return content, secrets
    if not _take_secrets(document, secrets):
        return content, secrets
    try:
        return dump_json(document[0]), secrets
    except TypeError:
        return None, secrets


def _take_secrets(document: list[Any], secrets: set[str]) -> bool:
    """Replace the credentials in the JSON *document*, also in texts that are JSON, and add them to *secrets*.

    Returns whether there are any. A credential is a text at the name of one, or in a list there.
    """
    has_any = False
    containers: list[tuple[Any, bool]] = [(document, False)]
    while containers:
        container, is_secret = containers.pop()
        is_object = type(container) is dict
        for key, value in list(container.items() if is_object else enumerate(container)):
            if is_object:
                is_secret = _names_json_secret(key.encode())
            if type(value) is dict or type(value) is list:
                containers.append((value, is_secret))
            elif type(value) is str and is_secret:
                secrets.add(value)
                container[key], has_any = PLACEHOLDER, True
            elif (
                type(value) is str
                and len(value) > _MIN_LENGTH
                and value.lstrip()[:1] in ("{", "[", '"')
                and _may_hold_json_secret(value.encode())
            ):
                try:
                    inner_document = [load_json(value)]
                except ValueError:
                    continue
                if _take_secrets(inner_document, secrets):
                    container[key], has_any = dump_json(inner_document[0]).decode(), True
    return has_any


@lru_cache(64)  # most exchanges have the headers of the one before
def _credentials_of(pairs: tuple[tuple[str, str], ...]) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """Return the *pairs* (name, value) with a credential, and the credentials in them."""
    secret_pairs = _secret_pairs(pairs)
    return secret_pairs, _credentials_in(secret_pairs)


def _forms_of(values: Iterable[str]) -> tuple[bytes, ...]:
    """Return the forms in which the credentials *values* may appear, the longest first."""
    long_values = [value for value in values if len(value) >= _MIN_LENGTH]
    forms = {form for value in long_values for form in (value, *encoded_forms(value))}
    sorted_forms = sorted((form for form in forms if len(form) >= _MIN_LENGTH), key=len, reverse=True)
    return tuple(form.encode(errors="replace") for form in sorted_forms)


_known_forms_of: Final = lru_cache(64)(_forms_of)


def _credentials_in(secret_pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the credentials in the values of *secret_pairs*, of headers or query parameters."""
    credentials: set[str] = set()
    for name, value in secret_pairs:
        if value.startswith("AWS4-"):  # it also contains header names and the region
            credentials.update(re.findall(r"(?:Credential|Signature)=([^\s,/]+)", value))
        elif name == "cookie":
            credentials.update(re.findall(r"=([^\s;]+)", value))
        else:
            credentials.update(re.split(r"[\s,]+", value))
            credentials.update(word.strip(",") for word in value.split())
        if value[:6].lower() == "basic ":
            credentials |= _basic_credentials(value[6:])
    return frozenset(credentials)


def _basic_credentials(value: str) -> set[str]:
    """Return the user and the password in *value*, of an ``Authorization: Basic``."""
    try:
        text = b64decode(value).decode()
    except ValueError:
        return set()
    return {text, *text.split(":", 1)}


def _secret_pairs(pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the *pairs* (name, value) with a credential as the value."""
    secret_pairs: list[tuple[str, str]] = []
    other_pairs: list[tuple[str, str]] = []
    for pair in pairs:
        (secret_pairs if _is_named_secret(pair[0]) else other_pairs).append(pair)
    if holds_key("\n".join([value for _, value in other_pairs])):  # usually false, so search all at once
        secret_pairs += [pair for pair in other_pairs if holds_key(pair[1])]
    return secret_pairs


@lru_cache(1024)  # the same few header names occur in every exchange
def _is_named_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None and _HARMLESS_NAME.search(name) is None

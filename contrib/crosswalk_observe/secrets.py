"""Redacts credentials in the URL, the headers and the bodies of an exchange."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from crosswalk.service import encoded_forms, holds_key

PLACEHOLDER: Final = "<secret>"
_MIN_LENGTH: Final = 12
"""Shorter values are words, such as the ``EMPTY`` sent to servers without keys, and not credentials."""
_NAME: Final = re.compile(
    r"auth|token|secret|key|cookie|session|signature|credential|passw|\bsig\b|\bcode\b|^x-amz-security|subscription",
    re.IGNORECASE,
)
_IN_JSON: Final = re.compile(
    rb'("[\w.-]{0,60}(?:authorization|api[-_]?key|passw|secret|(?:auth|access|bearer|security)[-_]?token)[\w.-]{0,60}"'
    rb'\s*:\s*")((?:[^"\\]|\\.)*)"',
    re.IGNORECASE,
)
"""Credentials in the JSON of a request, such as those that the server passes on to its tools."""
_HARMLESS: Final = re.compile(r"ratelimit|^access-control-", re.IGNORECASE)


class Secrets:
    """Redacts the credentials of one exchange.

    Args:
        url: the URL of the request.
        headers: the headers of the request by lower-case name.
        content: the body of the request, or ``None`` if it is unknown.
    """

    def __init__(self, url: str, headers: Mapping[str, str], content: bytes | None = None) -> None:
        self._content = content
        self._parts = parts = urlsplit(url)
        self._query = parse_qsl(parts.query, keep_blank_values=True)
        self._secret_pairs = _secret_pairs([*headers.items(), *self._query])
        in_json = [match[2].decode(errors="replace") for match in _IN_JSON.finditer(content or b"")]
        self._is_in_json = bool(in_json)
        values = {unquote(parts.password or ""), unquote(parts.username or "")}
        for name, value in (*self._secret_pairs, *(("", value) for value in in_json)):
            values.update(_credentials_in(name, value))
        values = {word for word in values if len(word) >= _MIN_LENGTH}
        forms = {
            form for value in values for form in (value, value.replace("/", r"\/"), *encoded_forms(value))
        }
        longest = sorted((form for form in forms if len(form) >= _MIN_LENGTH), key=len, reverse=True)
        self._forms = tuple(form.encode() for form in longest)

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
        content = self._content
        if self._is_in_json and content is not None:
            content = _IN_JSON.sub(rb'\1<secret>"', content)
        return None if content is None else self.redact(content)

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return *headers*, of the request or the answer, without credentials."""
        redacted = {**headers, **{name: PLACEHOLDER for name, _ in _secret_pairs(headers.items())}}
        if self.appear_in("\n".join(redacted.values()).encode(errors="replace")):
            redacted = {name: self._redact_text(value) for name, value in redacted.items()}
        return redacted

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
        return any(form in data for form in self._forms)


def _credentials_in(name: str, value: str) -> list[str]:
    """Return the credentials in *value*, of a header or query parameter called *name*."""
    if value.startswith("AWS4-"):  # it also contains header names and the region
        return re.findall(r"(?:Credential|Signature)=([^\s,/]+)", value)
    if name == "cookie":
        return re.findall(r"=([^\s;]+)", value)
    return re.split(r"[\s,]+", value)


def _secret_pairs(pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the *pairs* (name, value) with a credential as the value."""
    named: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for pair in pairs:
        (named if _is_named_secret(pair[0]) else others).append(pair)
    if holds_key("\n".join(value for _, value in others)):  # usually false, so search all of them at once
        named += [pair for pair in others if holds_key(pair[1])]
    return named


@lru_cache(1024)  # the same few header names occur in every exchange
def _is_named_secret(name: str) -> bool:
    return _NAME.search(name) is not None and _HARMLESS.search(name) is None

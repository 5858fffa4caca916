"""What of an exchange nobody may see: credentials in its URL and headers, and where a body repeats them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from crosswalk.service import encoded_forms, holds_key

__all__ = ["PLACEHOLDER", "Secrets"]

PLACEHOLDER: Final = "<secret>"
_MIN_LENGTH: Final = 12
"""What is shorter is no credential but a word, such as the ``EMPTY`` that servers without keys are sent."""
_NAME: Final = re.compile(
    r"auth|token|secret|key|cookie|session|signature|credential|passw|\bsig\b|\bcode\b|^x-amz-security|subscription",
    re.IGNORECASE,
)
_IN_JSON: Final = re.compile(
    rb'("[\w.-]{0,60}(?:authorization|api[-_]?key|passw|secret|(?:auth|access|bearer|security)[-_]?token)[\w.-]{0,60}"'
    rb'\s*:\s*")((?:[^"\\]|\\.)*)"',
    re.IGNORECASE,
)
"""A credential in a request's JSON: those that a server is to show to others, such as its tools."""
_HARMLESS: Final = re.compile(r"ratelimit|^access-control-", re.IGNORECASE)


class Secrets:
    """Takes credentials out of what is recorded of one exchange.

    Args:
        url: where the request goes.
        headers: those of the request, by their names in lower case.
        content: its body; ``None`` where it is not known.
    """

    def __init__(self, url: str, headers: Mapping[str, str], content: bytes | None = None) -> None:
        self._url = url
        self._content = content
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        values = {unquote(parts.password or ""), unquote(parts.username or "")}
        for pairs in (headers.items(), query):
            for name, value in _secret_pairs(pairs):
                values.update(_credentials_in(name, value))
        for found in _IN_JSON.finditer(content or b""):
            values.update(_credentials_in("", found[2].decode(errors="replace")))
        values = {word for word in values if len(word) >= _MIN_LENGTH}
        forms = {
            form for value in values for form in (value, value.replace("/", r"\/"), *encoded_forms(value))
        }
        longest = sorted((form for form in forms if len(form) >= _MIN_LENGTH), key=len, reverse=True)
        self._forms = tuple(form.encode() for form in longest)

    def url(self) -> str:
        """The URL without user, password, fragment and the secrets of its query."""
        parts = urlsplit(self._url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        secret = set(_secret_pairs(query))
        query = [(name, PLACEHOLDER if (name, value) in secret else value) for name, value in query]
        place = parts.netloc.rpartition("@")[2]
        path = self._redact_text(parts.path)
        return urlunsplit(
            (parts.scheme, place, path, urlencode(query, safe="<>/:", quote_via=quote, errors="replace"), "")
        )

    def content(self) -> bytes | None:
        """The body of the request without credentials."""
        content = self._content
        return None if content is None else self.redact(_IN_JSON.sub(rb'\1<secret>"', content))

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """*headers* without credentials: those of the request, or of the answer."""
        found = {**headers, **{name: PLACEHOLDER for name, _ in _secret_pairs(headers.items())}}
        if self.appear_in("\n".join(found.values()).encode(errors="replace")):
            found = {name: self._redact_text(value) for name, value in found.items()}
        return found

    def redact(self, data: bytes) -> bytes:
        """*data* without what was a credential of the request."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, PLACEHOLDER.encode())
        return data

    def _redact_text(self, text: str) -> str:
        return self.redact(text.encode(errors="replace")).decode()

    def appear_in(self, data: bytes) -> bool:
        """Whether a credential of the request stands in *data*."""
        return any(form in data for form in self._forms)

    def __repr__(self) -> str:
        return "Secrets()"


def _credentials_in(name: str, value: str) -> list[str]:
    """What of *value*, of a header or a query called *name*, is a credential."""
    if value.startswith("AWS4-"):  # it also names headers and the place
        return re.findall(r"(?:Credential|Signature)=([^\s,/]+)", value)
    if name == "cookie":
        return re.findall(r"=([^\s;]+)", value)
    return re.split(r"[\s,]+", value)


def _secret_pairs(pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of *pairs*, of a name and a value, whose value is a credential."""
    named = [pair for pair in pairs if _is_named_secret(pair[0])]
    others = [pair for pair in pairs if not _is_named_secret(pair[0])]
    if holds_key("\n".join(value for _, value in others)):  # one search for all of them, for it is seldom so
        named += [pair for pair in others if holds_key(pair[1])]
    return named


@lru_cache(1024)  # the names of headers are few, and the same in every exchange
def _is_named_secret(name: str) -> bool:
    return _NAME.search(name) is not None and _HARMLESS.search(name) is None

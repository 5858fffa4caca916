"""Removes the credentials of a request from a server's texts: some servers repeat them in their errors."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from crosswalk.text import holds_key as holds_key

_MARK = "<secret>"
_LEAST = 4
"""Shorter values reveal nothing, and occur in many words."""
_PART = 8
"""The number of characters from which a part of a credential is removed too."""


class Redaction:
    """Removes credentials from texts: plain, in URLs, base64 or hex, and fragments left by cleaning and cutting.

    Args:
        values: of headers: credentials, with or without a scheme such as ``Bearer`` before them.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted(
            {value.rpartition(" ")[2] for value in values if len(value.rpartition(" ")[2]) >= _LEAST},
            key=len,
            reverse=True,
        )
        encoded = {form for value in self._values for form in encoded_forms(value)}
        parts = {p for value in self._values for p in re.split(r"[^\w-]+", value) if len(p) >= _PART}
        known = sorted({*self._values, *encoded, *parts}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known)), re.IGNORECASE) if known else None

    def __call__(self, text: str) -> str:
        """Return *text* without them."""
        if self._pattern is None:
            return text
        return self._without_cut_one(self._pattern.sub(_MARK, text))

    def _without_cut_one(self, text: str) -> str:
        """Return *text*, which may have been cut in the middle of a credential."""
        if not text.endswith("…"):
            return text
        head = text[:-1]
        for value in self._values:
            for length in range(len(value) - 1, _LEAST - 1, -1):
                if head.endswith(value[:length]):
                    return f"{head[:-length]}{_MARK}…"
        return text

    def __repr__(self) -> str:
        return "Redaction()"


def encoded_forms(value: str) -> Iterator[str]:
    """Return the encodings of *value*, also amid other text."""
    yield quote(value, safe="")
    data = value.encode()
    yield data.hex()
    for before in range(3):  # its position in a group of three bytes decides its base64 form
        coded = base64.b64encode(bytes(before) + data).rstrip(b"=").decode()
        # The first characters hold bits of the text before, the last one may hold bits of the text behind.
        whole = coded[-(-before * 8 // 6) : -1 if (before + len(data)) % 3 else None]
        if len(whole) >= _PART:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")

"""Texts of a server without the credentials that it was sent: some servers repeat them in their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

__all__ = ["Redaction"]

_MARK = "<secret>"
_LEAST = 4
"""What is shorter tells nothing, and stands in many a word."""
_PART = 8
"""From how many characters on a part of a credential is one too."""


class Redaction:
    """Takes credentials out of texts: as they are, URL-encoded, and what cleaning and cutting left of them.

    Args:
        values: of headers: credentials, with or without a scheme such as ``Bearer`` before them.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted(
            {value.rpartition(" ")[2] for value in values if len(value.rpartition(" ")[2]) >= _LEAST},
            key=len,
            reverse=True,
        )
        encoded = {quote(value, safe="") for value in self._values}
        parts = {p for value in self._values for p in re.split(r"[^\w-]+", value) if len(p) >= _PART}
        known = sorted({*self._values, *encoded, *parts}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known)), re.IGNORECASE) if known else None

    def __call__(self, text: str) -> str:
        """*text* without them."""
        if self._pattern is None:
            return text
        return self._without_cut_one(self._pattern.sub(_MARK, text))

    def _without_cut_one(self, text: str) -> str:
        """*text*, which may have been cut in the middle of a credential."""
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

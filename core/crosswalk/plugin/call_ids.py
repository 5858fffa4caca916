"""Which ids of tool calls a provider's server takes."""

from __future__ import annotations

import re
from typing import Final

import attrs

__all__ = ["CallIds"]

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LONGEST = 24
_ANY = int.from_bytes(b"letters of both cases, and digits", "big")
"""How long an id is that is made where a server takes longer ones: 142 bits."""


@attrs.frozen(kw_only=True)
class CallIds:
    """Which ids of tool calls a server takes; the service translates those of other servers that it would refuse.

    Attributes:
        pattern: the regular expression that an id matches as a whole; letters and digits must.
        maximum: the most characters that it may have.

    Raises:
        ValueError: an id of letters and digits is none.
    """

    pattern: str = ".+"
    maximum: int = 64

    def __attrs_post_init__(self) -> None:
        if not self.fits(self._spelt(_ANY)):
            raise ValueError("the pattern of ids must allow letters and digits, as many as the maximum says")

    def fits(self, id: str) -> bool:
        """Whether *id* is one that the server takes."""
        return len(id) <= self.maximum and re.fullmatch(self.pattern, id, re.ASCII) is not None

    def make(self, seed: str) -> str:
        """An id that fits: for the same *seed* always the same one."""
        from hashlib import sha256  # only to ask a server

        return self._spelt(int.from_bytes(sha256(seed.encode("utf-8", "surrogatepass")).digest(), "big"))

    def _spelt(self, number: int) -> str:
        letters = []
        for _ in range(min(self.maximum, _LONGEST)):
            number, location = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[location])
        return "".join(letters)

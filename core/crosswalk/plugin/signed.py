"""How a request is signed; loaded where one is, for reading answers does not need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs


@attrs.frozen
class Signed:
    """What a request gets that is signed.

    Attributes:
        headers: the headers that say so, beside those that it has.
        secrets: what of them nobody may see, not even where the server repeats it in an error.
    """

    headers: Mapping[str, str] = attrs.field(repr=False)
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)


Sign = Callable[[str, str, Mapping[str, str], bytes], Signed]
"""Signs a request: its method, URL, headers and body."""

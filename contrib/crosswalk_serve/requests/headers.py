"""The few headers of a client that its own API reads as part of the request. The gateway handles all others.

Facts: provider documents "Anthropic Messages", "OpenAI Responses".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from crosswalk.convert import WireForm
from crosswalk.service.client_requests.incoming import VERSION
from crosswalk_serve.http_errors import BadRequestError

__all__ = ["said_beside"]

_KNOWN: Final = b"2023-06-01"
_OPENAI: Final = (b"openai-beta",)
_READ: Final = {
    WireForm.OPENAI_CHAT: _OPENAI,
    WireForm.OPENAI_COMPLETIONS: _OPENAI,
    WireForm.OPENAI_RESPONSES: _OPENAI,
    WireForm.ANTHROPIC: (b"anthropic-beta", VERSION.encode()),
}
"""The headers that switch features on and do not identify the sender, by the client's form."""
_WORDS: Final = re.compile(rb"[!-+\--~]+(?:[ \t]*,[ \t]*[!-+\--~]+)*")


def said_beside(form: WireForm, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the options in the *headers* of a request in the form *form*, by name in lower case.

    A header that comes twice is one list. The version in Anthropic's form is left out, because it asks for nothing.

    Raises:
        BadRequestError: a header is not a list of plain words.
    """
    wanted = _READ.get(form, ())
    results: dict[str, str] = {}
    for name, value in headers:
        if name not in wanted or value in (b"", _KNOWN):
            continue
        location = name.decode()
        if not _WORDS.fullmatch(value):
            raise BadRequestError("expected words with commas between them", location)
        raw = value.decode()
        results[location] = f"{results[location]}, {raw}" if location in results else raw
    return results

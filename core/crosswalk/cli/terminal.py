"""Standard output and standard error, where a model's text may end up on a terminal.

What a model writes is never sent raw to a terminal: escape sequences, other control characters and the marks
that turn the direction of text around are shown as ``\\uXXXX``.
"""

from __future__ import annotations

import os
import re
import sys

__all__ = ["close_quietly", "harmless", "say", "write_json", "write_text"]

# C1, DEL, the marks of direction, the separators of lines: what JSON leaves as it is and a terminal may obey.
_IN_JSON = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
_HARMFUL_IN_JSON = re.compile(f"[{_IN_JSON}]")
_HARMFUL = re.compile(f"[\x00-\x1f\ud800-\udfff{_IN_JSON}]")


def harmless(text: str) -> str:
    """*text* as one line that a terminal shows and does not obey."""
    return _HARMFUL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def write_json(data: bytes) -> None:
    """Write a JSON text to standard output, in UTF-8 whatever the locale; a terminal gets no harmful mark."""
    if sys.stdout.isatty():
        data = _HARMFUL_IN_JSON.sub(_escaped, data.decode()).encode()
    _write(data)


def write_text(text: str) -> None:
    """Write lines to standard output; their content has to be :func:`harmless` already."""
    _write(text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace"))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """Write a line to standard error."""
    print(harmless(text), file=sys.stderr, flush=True)


def close_quietly() -> None:
    """Let nothing more reach standard output: its reader went away, and Python would complain at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

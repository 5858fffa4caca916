"""Records the terminal for README's pictures: ``python scripts/pictures.py`` rewrites ``docs/*.svg``.

The commands really run, in a pseudo-terminal. ``ask`` calls a server that replays a recorded answer of Ollama. A test
compares the text of the pictures with current output, without measured times.
"""

from __future__ import annotations

import fcntl
import html
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

from crosswalk.testing import ReplayServer, load_capture

__all__ = ["PICTURES", "record", "said"]

ROOT = Path(__file__).parents[1]
CAPTURES = "tests/captures/ollama"
PICTURES = {
    "ask": (88, 'crosswalk ask --provider ollama --model tiny-go "What is the answer?"'),
    "explain": (88, f"crosswalk explain {CAPTURES}/go_chat_think_true.response.json"),
}
"""The width and the command of each picture."""


def record(name: str) -> str:
    """Record the picture of that name now, and return it as SVG."""
    width, command = PICTURES[name]
    with ReplayServer(
        [load_capture(ROOT / CAPTURES / "go_chat_think_true_stream.response.ndjson")]
    ) as server:
        printed = _run(command, width, CROSSWALK_OLLAMA_BASE_URL=server.url)
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"\x1b[1m$ {command}\x1b[0m\n{printed}"))
    svg = console.export_svg(title="", unique_id=f"crosswalk-{name}")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fonts that would be downloaded
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _run(command: str, width: int, **environment: str) -> str:
    """Return the output of *command* on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    words = [str(Path(sys.executable).parent / "crosswalk"), *shlex.split(command)[1:]]
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    settings = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "no_proxy": "*", **environment}
    process = subprocess.Popen(
        words, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env={**plain, **settings}
    )
    os.close(theirs)
    printed = b""
    try:
        while piece := os.read(ours, 65536):
            printed += piece
    except OSError:  # on Linux, this marks the end of a terminal
        pass
    os.close(ours)
    assert process.wait() == 0, printed
    text = printed.decode().replace("\r\n", "\n")
    # Progress displays hide the cursor. They are gone when it is shown again.
    return re.sub(r"\x1b\[\?25l.*\x1b\[\?25h(\r|\x1b\[1A|\x1b\[2K)*", "", text, flags=re.DOTALL).strip()


def said(svg: str) -> str:
    """Return the text of a picture, without measured times and their space."""
    text = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")
    text = re.sub(r"[\d.]+ ?(ms|s|tok/s)\b", r"N \1", text)
    return re.sub(r"[\s─]+", " ", text)


if __name__ == "__main__":
    for name in PICTURES:
        (ROOT / f"docs/{name}.svg").write_text(record(name), encoding="utf-8")

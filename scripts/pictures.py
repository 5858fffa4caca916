"""Records README's and the pages' pictures: ``python scripts/pictures.py`` rewrites ``docs/*.svg`` and the report's page.

The commands really run, in a pseudo-terminal. The servers behind them replay recorded answers. A test compares the text of
the pictures with current output, without measured times. The picture of the report's page needs Chromium.
"""

from __future__ import annotations

import fcntl
import html
import io
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console
from rich.text import Text

from crosswalk.agent import AgentTelemetry, SyncAgent, tool
from crosswalk.service import Endpoint, OpenTelemetry, SyncLLMService
from crosswalk.testing import ReplayServer, load_capture
from crosswalk.testing.replay import Answer
from crosswalk.types import ToolCall

__all__ = ["PICTURES", "page_picture", "record", "said"]

ROOT = Path(__file__).parents[1]
CAPTURES = "tests/captures/ollama"
_ASK = 'crosswalk ask --provider {} --model tiny-go "What is the answer?"'
_STREAM = f"{CAPTURES}/go_chat_think_true_stream.response.ndjson"
_WIDTH = 88


def record(name: str) -> str:
    """Record the picture of that name now, and return it as SVG."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(PICTURES[name]()))
    svg = console.export_svg(title="", unique_id=f"crosswalk-{name}")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fonts that would be downloaded
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _ask() -> str:
    with ReplayServer([load_capture(ROOT / _STREAM)]) as server:
        return _shown(_ASK.format("ollama"), CROSSWALK_OLLAMA_BASE_URL=server.url)


def _explain() -> str:
    return _shown(f"crosswalk explain {CAPTURES}/go_chat_think_true.response.json")


def _gateway() -> str:
    """Two clients of two APIs ask one server of Ollama through a gateway."""
    with ExitStack() as stack:
        server = stack.enter_context(ReplayServer([load_capture(ROOT / _STREAM)]))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = "models:\n  tiny-go:\n    provider: ollama\n    base_url: http://localhost:11434\n"
        (folder / "gateway.yml").write_text(config.replace("http://localhost:11434", server.url))
        url = stack.enter_context(_serving(folder / "gateway.yml"))
        bases = {"openai": f"{url}/v1", "anthropic": f"{url}/v1"}
        asked = [
            _shown(
                _ASK.format(name),
                **{f"CROSSWALK_{name.upper()}_BASE_URL": base, f"{name.upper()}_API_KEY": "none"},
            )
            for name, base in bases.items()
        ]
    begin = f"\x1b[1m$ cat gateway.yml\x1b[0m\n{config}\x1b[1m$ crosswalk serve gateway.yml &\x1b[0m"
    return "\n\n".join([begin, *asked])


@contextmanager
def _serving(config: Path) -> Iterator[str]:
    command = [str(_SCRIPT), "serve", str(config), "--port", "0"]
    gateway = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert gateway.stderr is not None
    try:
        found = re.search(r"http://[^;\s]+", gateway.stderr.readline())
        assert found is not None
        yield found[0]
    finally:
        gateway.terminate()
        gateway.communicate()


def _trace() -> str:
    """The spans of an agent that calls two tools, one below the other, and when each of them ran."""

    @tool
    def get_time(zone: str) -> str:
        """Return the time in *zone*."""
        return "12:00"

    @tool
    def get_weather(city: str) -> str:
        """Return the weather in *city*."""
        return "mild"

    exporter, tracers, meters = InMemorySpanExporter(), TracerProvider(), MeterProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    calls = (
        ToolCall("1", "get_time", '{"zone": "Europe/Paris"}'),
        ToolCall("2", "get_weather", '{"city": "Paris"}'),
    )
    with ReplayServer() as server:
        server.add(Answer.text("Hello!"))  # the first call of a process loads what the others use
        server.add(Answer.calls(*calls)).add(Answer.text("It is noon, and mild."))
        endpoint = Endpoint("vllm", base_url=server.url, model="tiny")
        with SyncLLMService(endpoint, observers=[OpenTelemetry(tracers, meters)]) as service:
            agent = SyncAgent(
                service, [get_time, get_weather], telemetry=AgentTelemetry(tracers), name="guide"
            )
            service.complete("Hi")
            exporter.clear()
            for _ in agent.run("What are the weather and the time in Paris?"):
                pass
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    return "\n".join(_span_lines(spans))


def _span_lines(spans: list[ReadableSpan]) -> Iterator[str]:
    first, last = spans[0].start_time or 0, max(span.end_time or 0 for span in spans)
    shown = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons")
    for span in spans:
        start, end = ((moment or 0) - first for moment in (span.start_time, span.end_time))
        before, length = (round(30 * part / (last - first)) for part in (start, end - start))
        bar = " " * before + "─" * max(length, 1)
        indent = "" if span.parent is None else "  "
        yield f"\x1b[1m{indent + span.name:<28}\x1b[0m\x1b[34m{bar:<32}\x1b[0m{(end - start) / 1e6:7.1f} ms"
        attributes = span.attributes or {}
        told = [f"{name.rpartition('.')[2]}={attributes[name]!s}" for name in shown if name in attributes]
        if told:
            yield f"\x1b[2m{indent}  {'  '.join(told)}\x1b[0m"


PICTURES: dict[str, Callable[[], str]] = {
    "ask": _ask,
    "explain": _explain,
    "gateway": _gateway,
    "trace": _trace,
}
"""What makes the text of each picture, in the terminal's codes."""


def page_picture(file: Path) -> None:
    """Show the page of ``crosswalk report --demo --html`` in Chromium, and write what it looks like to *file*."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium is not None, "the picture of a page needs Chromium"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        html_page = subprocess.run([_SCRIPT, "report", "--demo", "--html"], capture_output=True, check=True)
        page.write_bytes(html_page.stdout)
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1000,1080",
        ]
        subprocess.run([chromium, *flags, f"--screenshot={file}", page.as_uri()], check=True)


_SCRIPT = Path(sys.executable).parent / "crosswalk"


def _shown(command: str, **environment: str) -> str:
    return f"\x1b[1m$ {command}\x1b[0m\n{_run(command, _WIDTH, **environment)}"


def _run(command: str, width: int, **environment: str) -> str:
    """Return the output of *command* on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    words = [str(_SCRIPT), *shlex.split(command)[1:]]
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
    text = re.sub(r"[\d.]+ ?m?(s|tok/s)\b", r"N \1", text)
    return re.sub(r"[\s─]+", " ", text)


if __name__ == "__main__":
    for name in PICTURES:
        (ROOT / f"docs/{name}.svg").write_text(record(name), encoding="utf-8")
    page_picture(ROOT / "docs/report-page.png")

"""Ask a live server and show the answer while it arrives: reasoning dimmed, then the text, then the numbers.

python examples/stream_to_terminal.py ollama http://localhost:11434/api/chat llama3.2 "Why is the sky blue?"
python examples/stream_to_terminal.py vllm http://localhost:8000/v1/chat/completions my-model "Why?"
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse

from crosswalk import ChatResponse, CrosswalkError, normalize, normalize_stream

DIM, PLAIN = ("\x1b[2m", "\x1b[0m") if sys.stdout.isatty() else ("", "")


def ask(provider: str, url: str, model: str, question: str) -> ChatResponse:
    """Send *question* and print the answer as it arrives."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": question}]}
    if provider != "ollama":
        body["stream_options"] = {"include_usage": True}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    started = time.perf_counter()
    try:
        answer = urllib.request.urlopen(request, timeout=120)
    except urllib.error.HTTPError as error:
        return normalize(error.read(), provider, status=error.code)
    with answer:
        # The timer starts with the stream, so the time since the request is added.
        waited = time.perf_counter() - started
        stream = normalize_stream(chunks(answer), provider, timer=Stopwatch(waited))
        for delta in stream:
            if delta.reasoning_delta:
                print(DIM + harmless(delta.reasoning_delta) + PLAIN, end="", flush=True)
            if delta.content_delta:
                print(harmless(delta.content_delta), end="", flush=True)
    return stream.response


class Stopwatch:
    """A timer that started *waited* seconds ago."""

    def __init__(self, waited: float) -> None:
        self.waited = waited

    def __call__(self) -> float:
        """The time in seconds."""
        reading, self.waited = time.perf_counter() - self.waited, 0.0
        return reading


def chunks(answer: HTTPResponse) -> Iterator[bytes]:
    """Yield the bytes of *answer* as they arrive, in the pieces that the network delivers."""
    while chunk := answer.read1(65536):
        yield chunk


def harmless(text: str) -> str:
    """Return *text* without control characters: model output must not control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def milliseconds(seconds: float) -> str:
    """Return *seconds* in readable form."""
    return f"{seconds * 1000:.0f} ms"


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        response = ask(*arguments).raise_for_error()
    except CrosswalkError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    for call in response.tool_calls:
        print(f"\n-> {harmless(call.name)}({harmless(call.arguments)})", end="")
    metadata = response.metadata
    first = metadata.time_to_first_token
    print(f"\n\n{response.usage} [{response.finish_reason}]")
    print(f"Model: {harmless(response.model)} | Provider: {metadata.provider_id}", end="")
    print(f" | Latency: {milliseconds(metadata.request_duration.total_seconds())}", end="")
    print(f" | TTFT: {milliseconds(first.total_seconds())}" if first is not None else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Watch a program that calls openai's SDK with five lines: its exchanges become OpenTelemetry spans.

python examples/watch_openai.py      (a recorded answer, no model needed)
OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_API_KEY=none python examples/watch_openai.py my-model
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import openai
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import crosswalk
from crosswalk.testing import ReplayServer
from crosswalk_observe import OpenTelemetrySink, Watcher, install

RECORDED = Path(crosswalk.__file__).parent / "cli/recordings"


def as_it_was(model: str) -> None:
    """Run the program itself, which does not know that it is watched."""
    client = openai.OpenAI()
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [
        {"role": "user", "content": "What is the answer?"}
    ]
    chunks = client.chat.completions.create(model=model, messages=messages, stream=True, temperature=0.2)
    print("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices).strip())
    client.close()


def told(span: ReadableSpan) -> str:
    """Return *span* as lines."""
    said = (f"  {name} = {value}" for name, value in sorted((span.attributes or {}).items()))
    return "\n".join([f"{span.name}, {'below' if span.parent else 'no'} parent", *said])


def main(model: str) -> None:
    """Watch the program."""
    spans = InMemorySpanExporter()
    tracers = TracerProvider()  # a traced program already has one
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    with Watcher(OpenTelemetrySink(tracers)) as watcher:
        install(watcher)
        with tracers.get_tracer("program").start_as_current_span("program"):
            as_it_was(model)
    # Exchanges are reported from a second thread: one may end before its parent, or after it.
    for span in sorted(spans.get_finished_spans(), key=lambda span: span.start_time or 0):
        print(told(span))


if __name__ == "__main__":
    if "OPENAI_BASE_URL" in os.environ:
        main(sys.argv[1])
    else:
        with ReplayServer(RECORDED) as server:
            os.environ |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
            main("tiny")

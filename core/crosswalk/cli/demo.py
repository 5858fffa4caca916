"""``crosswalk demo``: two dialects, one canonical form, nothing lost, and a cut stream that does not pass for whole.

The answers come over HTTP from a server in this process, which replays recordings of real servers.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from crosswalk.cli.ask import EXIT_HELP, Asked, Screen, ask, report
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, OK, say, write_table
from crosswalk.cli.tracing import Trace, Tracer
from crosswalk.errors import IncompleteStreamError
from crosswalk.mapping.normalize import normalize
from crosswalk.plugin.registry import registry
from crosswalk.service import ChatRequest, Endpoint, SyncLLMService
from crosswalk.testing.captures import Capture, load_captures
from crosswalk.testing.exchange import Slow
from crosswalk.testing.perturbation import show_path
from crosswalk.testing.replay import ReplayServer

_RECORDINGS: Final = Path(__file__).parent / "recordings"
_MODELS: Final = {"ollama": "tiny-go", "vllm": "tiny"}
_PROMPT: Final = "Please answer. mode:think."
"""The question that the recordings answer."""
_PACE: Final = 0.05
"""Seconds between two events on a terminal. The recorded model was faster than anybody can read."""
_SHOWN_PATHS: Final = ("finish_reason", "usage.prompt_tokens", "usage.completion_tokens")
"""The canonical fields of which the servers' own are shown."""


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Ask a server in this process, which replays recorded answers of Ollama and vLLM over HTTP.
            You need no model and no network.""",
        epilog=EXIT_HELP,
        examples=("crosswalk demo",),
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask both servers, compare the answers, look for lost fields, and read a stream that was cut."""
    say("A server in this process replays over HTTP what Ollama and vLLM once sent: no model, no network.")
    captures = load_captures(_RECORDINGS)
    for capture in captures:
        status = report(_show(capture, arguments), panel=True)
        if status != OK:
            return status
    traces = {str(capture.server): _traces(capture) for capture in captures}
    say("")
    say("Two dialects, one form:")
    write_table(("canonical", "value", *traces), [_row(path, traces) for path in _SHOWN_PATHS])
    say("")
    say("Nothing is lost. Each field was changed in turn, and the answer changed with it or was refused:")
    for server, server_traces in traces.items():
        say(f"{server}: {len(server_traces)} fields, {sum(trace.is_lost for trace in server_traces)} lost")
    say("")
    say("A stream that was cut does not pass for a whole one:")
    for capture in captures:
        _cut(capture)
    say("")
    say("Now ask your own: crosswalk ask --provider ollama --model llama3.2 'Why is the sky blue?'")
    return (
        FAILED if any(trace.is_lost for server_traces in traces.values() for trace in server_traces) else OK
    )


def _traces(capture: Capture) -> list[Trace]:
    tracer = Tracer(registry.mapper(str(capture.server)), capture)
    return [tracer.trace(leaf) for leaf in tracer.leaves()]


def _row(path: str, traces: Mapping[str, list[Trace]]) -> list[str]:
    """The last value on its way to *path*, and the field of each server that has it."""
    leaves_by_server = [
        [
            trace.leaf
            for trace in server_traces
            if any(show_path(effect.path) == path for effect in trace.response)
        ]
        for server_traces in traces.values()
    ]
    return [
        path,
        str(leaves_by_server[0][-1].value),
        *(show_path(leaves[-1].path) for leaves in leaves_by_server),
    ]


def _cut(capture: Capture) -> None:
    first_half = capture.body[: len(capture.body) // 2]
    try:
        normalize(first_half, str(capture.server))
    except IncompleteStreamError as error:
        reasoning = None if error.partial is None else error.partial.reasoning
        say(f"{capture.server}: {type(error).__name__}, which keeps what came: {reasoning!r}")


def _show(capture: Capture, arguments: argparse.Namespace) -> Asked:
    provider = str(capture.server)
    model = _MODELS[provider]
    command = ["crosswalk", "ask", "--provider", provider, "--model", model, _PROMPT]
    say("")
    say(f"> {shlex.join(command)}")
    faults = [Slow(_PACE)] if sys.stdout.isatty() else []
    with (
        ReplayServer([capture], faults=faults) as server,
        SyncLLMService(
            Endpoint(provider, model=model, base_url=server.url),
            settings=arguments.settings,
            # Neither a proxy nor certificates stand between a process and itself.
            client_options={"trust_env": False, "verify": False},
        ) as service,
    ):
        return ask(service, ChatRequest(_PROMPT), Screen(), stream=True)

"""``crosswalk demo``: ``ask`` against a server in this process, which replays what real servers once sent."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Final

from crosswalk.cli.ask import report
from crosswalk.cli.exits import OK
from crosswalk.cli.live.asking import ask
from crosswalk.cli.live.screen import Screen
from crosswalk.cli.terminal import say
from crosswalk.service import ChatRequest, Endpoint, SyncLLMService
from crosswalk.testing.captures import Capture, load_captures
from crosswalk.testing.faults import Slow
from crosswalk.testing.replay import ReplayServer

__all__ = ["run"]

_RECORDINGS: Final = Path(__file__).parent / "recordings"
_MODELS: Final = {"ollama": "tiny-go", "vllm": "tiny"}
_PROMPT: Final = "Please answer. mode:think."
"""What the recordings answer."""
_PACE: Final = 0.05
"""Seconds between two events, where somebody watches: the recorded model was faster than one can read."""


def run(arguments: argparse.Namespace) -> int:
    """Show one answer of each recorded server."""
    say("A server in this process replays over HTTP what Ollama and vLLM once sent: no model, no network.")
    for capture in load_captures(_RECORDINGS):
        status = _show(capture, arguments)
        if status != OK:
            return status
    say("")
    say("Now ask your own: crosswalk ask --provider ollama --model llama3.2 'Why is the sky blue?'")
    return OK


def _show(capture: Capture, arguments: argparse.Namespace) -> int:
    provider = str(capture.server)
    model = _MODELS[provider]
    command = ["crosswalk", "ask", "--provider", provider, "--model", model, _PROMPT]
    say("")
    say(f"> {shlex.join(command)}")
    pace = [Slow(_PACE)] if sys.stdout.isatty() else []
    with (
        ReplayServer([capture], faults=pace) as server,
        SyncLLMService(
            Endpoint(provider, model=model, base_url=server.url),
            settings=arguments.settings,
            # Neither a proxy nor certificates stand between a process and itself.
            client_options={"trust_env": False, "verify": False},
        ) as service,
    ):
        asked = ask(service, ChatRequest(_PROMPT), Screen(), stream=True)
    return report(asked, panel=True)

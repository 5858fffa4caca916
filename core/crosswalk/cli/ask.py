"""``crosswalk ask``: a model's answer while it comes, and what it took."""

from __future__ import annotations

import argparse

from crosswalk.cli.exits import FAILED, INTERRUPTED, OK, UsageError
from crosswalk.cli.live.asking import Asked, ask, request_of, service_of, turns_of
from crosswalk.cli.live.panel import show_panel
from crosswalk.cli.live.screen import Screen
from crosswalk.cli.terminal import say, write_json
from crosswalk.codec import to_json
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service import SyncLLMService, UnsupportedRequestError

__all__ = ["report", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Ask once; an answer that failed makes it fail, and so does one that was interrupted.

    Raises:
        UsageError: what is asked cannot be sent.
        ConfigurationError: nobody says where the server is, or with which key.
        PluginError: no such provider, or a broken one.
    """
    request = request_of(arguments, turns_of(arguments))
    screen = Screen(reasoning=arguments.reasoning, silent=arguments.json)
    with service_of(arguments) as service:
        try:
            asked = ask(service, request, screen, stream=arguments.stream)
        except UnsupportedRequestError as error:
            if error.options == ("model",):
                raise UsageError(_which_model(service)) from None
            raise UsageError(str(error)) from None
        except ConfigurationError as error:
            raise UsageError(str(error)) from None
    if arguments.json:
        write_json(to_json(asked.response, indent=True) + b"\n")
    return report(asked, panel=arguments.panel and not arguments.json)


def _which_model(service: SyncLLMService) -> str:
    """What to say where no model is named: which ones the server has, as far as it says so."""
    try:
        models = service.models()
    except CrosswalkError as error:
        return f"which model? say --model ({error})"
    return f"which model? say --model; the server has: {', '.join(models) or 'none'}"


def _hint(error: CrosswalkError, asked: Asked) -> str:
    """What to do about *error*; ``""`` where nothing is known."""
    info = getattr(error, "info", None)
    if info is None or info.code != "connect_error":
        return ""
    provider = asked.response.metadata.provider_id
    return f"; is the server running there? say --base-url, or set CROSSWALK_{provider.upper()}_BASE_URL"


def report(asked: Asked, *, panel: bool) -> int:
    """Say on standard error how it went; gives the exit status."""
    for call in asked.response.tool_calls:
        say(f"-> {call.name}({call.arguments})")
    hint = "" if asked.error is None else _hint(asked.error, asked)
    if panel and not hint:
        show_panel(asked.response)
    if asked.error is not None:
        say(f"crosswalk: {type(asked.error).__name__}: {asked.error}{hint}")
        return FAILED
    if asked.is_interrupted:
        say("interrupted: the answer is not complete")
        return INTERRUPTED
    return OK

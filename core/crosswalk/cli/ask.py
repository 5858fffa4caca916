"""``crosswalk ask``: shows a model's answer while it arrives, and what it cost."""

from __future__ import annotations

import argparse

from crosswalk.cli.asking import Asked, Screen, ask, request_of, service_of, show_panel, turns_of
from crosswalk.cli.terminal import FAILED, INTERRUPTED, OK, UsageError, say, write_json
from crosswalk.codec import to_json
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service import SyncLLMService, UnsupportedRequestError


def run(arguments: argparse.Namespace) -> int:
    """Ask once. The exit status tells of an answer that failed or was interrupted.

    Raises:
        UsageError: the request cannot be sent.
        ConfigurationError: the address or the key of the server is not configured.
        PluginError: the provider is unknown or broken.
    """
    request = request_of(arguments, turns_of(arguments))
    screen = Screen(reasoning=arguments.reasoning, silent=arguments.json)
    with service_of(arguments) as service:
        try:
            requested = ask(service, request, screen, stream=arguments.stream)
        except UnsupportedRequestError as error:
            if error.options == ("model",):
                raise UsageError(_which_model(service)) from None
            raise UsageError(str(error)) from None
        except ConfigurationError as error:
            raise UsageError(str(error)) from None
    if arguments.json:
        write_json(to_json(requested.response, indent=True) + b"\n")
    return report(requested, panel=arguments.panel and not arguments.json)


def _which_model(service: SyncLLMService) -> str:
    """The message for a request without a model: it lists the server's models if the server gives them."""
    try:
        models = service.models()
    except CrosswalkError as error:
        return f"which model? pass --model ({error})"
    return f"which model? pass --model; the server has: {', '.join(models) or 'none'}"


def _hint(error: CrosswalkError, asked: Asked) -> str:
    """Advice on *error*, or ``""`` if there is none."""
    info = getattr(error, "info", None)
    if info is None or info.code != "connect_error":
        return ""
    provider = asked.response.metadata.provider_id
    return f"; pass --base-url, or set CROSSWALK_{provider.upper()}_BASE_URL"


def report(asked: Asked, *, panel: bool) -> int:
    """Report the result on standard error, and return the exit status."""
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

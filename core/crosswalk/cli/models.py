"""``crosswalk models``: the models of a server."""

from __future__ import annotations

import argparse

from crosswalk.cli.ask import EXIT_HELP, KEY_HELP, add_address, endpoint_of
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, OK, harmless, say, write_text
from crosswalk.service import SyncLLMService


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"List the models of a server, one on each line. {KEY_HELP}",
        epilog=EXIT_HELP,
        examples=("crosswalk models ollama", "crosswalk models --base-url http://gpu:8000"),
    )
    parser.add_argument(
        "provider",
        nargs="?",
        metavar="NAME",
        help="the provider id (default: the settings' default provider; with --base-url, the server is asked)",
    )
    add_address(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the names of a server's models, one on each line.

    Raises:
        UsageError: no provider and no address is given.
        CrosswalkError: the server cannot be asked.
    """
    arguments.model = None
    with SyncLLMService(endpoint_of(arguments), settings=arguments.settings) as service:
        models = service.models()
    if not models:
        say("crosswalk models: the server lists no model")
        return FAILED
    write_text("".join(f"{harmless(name)}\n" for name in models))
    return OK

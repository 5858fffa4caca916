"""``crosswalk completion``: a script with which a shell completes the command line."""

from __future__ import annotations

import argparse

from crosswalk.cli.parser import whole_parser
from crosswalk.cli.terminal import OK, write_text
from crosswalk.plugin.registry import registry


def run(arguments: argparse.Namespace) -> int:
    """Write the script for a shell. It knows commands, options, their values, files, and the providers installed now."""
    import shtab

    parser = whole_parser()
    for command in parser.commands.values():
        for action in command.declared:
            if action.option_strings == ["--provider"]:
                action.choices = registry.names()
            elif action.metavar in ("DIR", "FILE", "PATH"):
                vars(action)["complete"] = shtab.DIR if action.metavar == "DIR" else shtab.FILE
    write_text(shtab.complete(parser, shell=arguments.shell) + "\n")
    return OK

"""``crosswalk completion``: what a shell needs to complete the command line, as a script of its own language."""

from __future__ import annotations

import argparse

from crosswalk.cli.arguments.parser import whole_parser
from crosswalk.cli.exits import OK
from crosswalk.cli.terminal import write_text
from crosswalk.plugin.registry import registry

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Write the script for a shell: commands, options, their words, files, and the providers that are installed now."""
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

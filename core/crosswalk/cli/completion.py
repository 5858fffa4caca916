"""``crosswalk completion``: a script with which a shell completes the command line."""

from __future__ import annotations

import argparse

from crosswalk.cli.parser import Parser, whole_parser
from crosswalk.cli.terminal import OK, write_text
from crosswalk.plugin.registry import registry


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Write a script for a shell: put it where the shell looks for completions, or source it. It knows
            the providers that are installed now; write it anew when that changes.""",
        examples=(
            "crosswalk completion bash > ~/.local/share/bash-completion/completions/crosswalk",
            "crosswalk completion zsh > ~/.zfunc/_crosswalk",
            "crosswalk completion fish > ~/.config/fish/completions/crosswalk.fish",
        ),
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")


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

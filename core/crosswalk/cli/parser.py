"""The parser of the command line, with examples for its help, and the commands of other packages."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, NoReturn

import attrs

from crosswalk.cli.terminal import EXIT_STATUS, USAGE, OutputError, UsageError, write_text
from crosswalk.plain_errors import CrosswalkError, PluginError
from crosswalk.plugin.installed import Point, installed_points
from crosswalk.text import harmless, meant
from crosswalk.words import right_word

# ------------------------------------------------------------------------------- installed
# Commands of other packages, found through the entry-point group ``crosswalk.commands``.
#
# :mod:`crosswalk.commands` describes such a command. It is imported only when it is the one that was typed.


GROUP: Final = "crosswalk.commands"
OPTIONAL: Final = {
    "batch": "map large logs to columns, in several processes",
    "serve": "serve any model to clients of any API",
}
"""The commands that come with Crosswalk's extras."""


@attrs.frozen(eq=False, repr=False)
class InstalledCommand:
    """A command as its distribution registered it. It has not been imported."""

    name: str
    point: Point

    @property
    def summary(self) -> str:
        """The line about it in the list of commands."""
        shipped_summaries = OPTIONAL if self._distribution == "crosswalk-llm" else {}
        return shipped_summaries.get(self.name) or f"from {self._distribution}"

    def add_to(self, commands: argparse._SubParsersAction[Any]) -> None:
        """Import the command and let it add its arguments.

        Raises:
            PluginError: it cannot be imported, or lacks a function.
        """
        command = self.load()
        add_arguments, run = getattr(command, "add_arguments", None), getattr(command, "run", None)
        if not callable(add_arguments) or not callable(run):
            raise self._broken("it has no add_arguments() and run()")
        description = (command.__doc__ or "").strip()
        parser = commands.add_parser(self.name, help=self.summary, description=description)
        self._tried(lambda: add_arguments(parser))
        parser.set_defaults(run=lambda arguments: self._tried(lambda: int(run(arguments))))

    def load(self) -> Any:
        """The object that the entry names, imported.

        Raises:
            PluginError: it cannot be imported.
        """
        return self._tried(self.point.load)

    def name_in(self, commands: argparse._SubParsersAction[Any]) -> None:
        """Add it to the list of commands, without importing it."""
        commands.add_parser(self.name, help=self.summary)

    def _tried(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except (UsageError, OutputError, CrosswalkError, BrokenPipeError):
            raise
        except Exception as error:  # another author's code may raise anything
            import logging

            logging.getLogger(__name__).debug("command %s", self.name, exc_info=True)
            raise self._broken(f"{type(error).__name__}: {error}") from error

    def _broken(self, cause: str) -> PluginError:
        cause_line = " ".join(cause.split())  # one line
        distribution = self._distribution
        return PluginError(
            f"the command of {distribution} is broken: {cause_line}",
            plugin=self.name,
            distribution=distribution,
        )

    @property
    def _distribution(self) -> str:
        distribution = self.point.dist
        return "an unknown package" if distribution is None else distribution.name


def installed_commands() -> Mapping[str, InstalledCommand]:
    """The commands of installed distributions by name. If two have the same name, the first counts."""
    commands: dict[str, InstalledCommand] = {}
    for point in installed_points(GROUP):
        commands.setdefault(point.name, InstalledCommand(point.name, point))
    return dict(sorted(commands.items()))


# ---------------------------------------------------------------------------------- parser
# The parser of the command line, with examples for its help. It loads the command that was typed.


COMMANDS: Final = {
    "normalize": "map recorded answers to canonical JSON",
    "providers": "list the installed providers",
    "check": "test a provider's mapping on captures",
    "explain": "show where each field of an answer went",
    "table": "list which wire field is which canonical field, by provider",
    "parse": "read a validated JSON value from a model's text",
    "diff": "map stored answers again and show the changes of a new mapping",
    "new-plugin": "write the project of a new provider plugin",
    "convert": "write recorded answers in another wire form and list what it cannot express",
    "report": "tokens, cost, errors and latencies of a log, by model, day and more",
    "samples": "write a sample log to try the commands on",
    "completion": "write a completion script for your shell",
    "ask": "ask a model and show its answer as it arrives",
    "models": "list the models of a server",
    "chat": "talk to a model, in a session that is saved and resumed",
    "record": "record a live exchange as a capture",
    "demo": "see ask at work, without a model and without a network",
}
"""Crosswalk's own commands, with a line about each. The module of its name has the rest."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. ``command`` of the result is the name of the command.

    Args:
        argv: the arguments after the program's name, or ``None`` for the process's own.

    Raises:
        SystemExit: the command line is wrong, or asks for help or the version, which have been shown.
    """
    words = sys.argv[1:] if argv is None else argv
    parser = _build(command=words[0] if words else None)
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(USAGE)
    command = parser.commands.get(words[0], parser)
    command.refuse_unknown(words[:1] if command is parser else words[1:])
    arguments, remainder = parser.parse_known_args(words)
    # Paths, and a provider and a prompt, may stand on both sides of an option, which argparse does not understand.
    paths = [path for path in remainder if path == "-" or not path.startswith("-")]
    name = "words" if hasattr(arguments, "words") else "paths"
    if paths != remainder or (remainder and not hasattr(arguments, name)):
        command.error(f"unrecognized arguments: {' '.join(remainder)}")
    if paths:
        setattr(arguments, name, [*getattr(arguments, name), *paths])
    return arguments


def whole_parser() -> Parser:
    """The parser with the arguments of every command."""
    return _build(whole=True)


class Parser(argparse.ArgumentParser):
    """Answers a wrong word with the nearest right one, and writes only harmless text to a terminal.

    Attributes:
        commands: the parsers of the commands, by name. Empty for a command's own parser.
        declared: the arguments that were added to it, outside groups.
    """

    def __init__(self, *, description: str = "", epilog: str = "", **options: Any) -> None:
        self.commands: Mapping[str, Parser] = {}
        self.declared: list[argparse.Action] = []
        self._epilog_text = epilog
        self._examples: tuple[str, ...] = ()
        # Without a width, argparse would load archivers to ask how wide the terminal is.
        self._width = _terminal_width()
        # An option that is abbreviated today would be ambiguous with the next one that is added.
        super().__init__(
            description=description,
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=self._width),
            allow_abbrev=False,
            **options,
        )

    def describe(self, description: str, *, examples: tuple[str, ...], epilog: str = EXIT_STATUS) -> None:
        """Set the texts of a command's help. The *epilog* and the *examples* follow the arguments."""
        self.description = description
        self._epilog_text = epilog
        self._examples = examples

    def format_help(self) -> str:
        """The help, which ends with examples of the command."""
        self.description = self._filled(self.description or "")
        self.epilog = self._filled(self._epilog_text)
        if self._examples:
            lines = "\n".join(f"  {line}" for line in self._examples)
            self.epilog += f"\n\nExamples:\n{lines}"
        return super().format_help()

    def _filled(self, text: str) -> str:
        return "\n".join(textwrap.wrap(" ".join(text.split()), self._width))

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """Add an argument, as :mod:`argparse` does."""
        action = super().add_argument(*names, **options)
        self.declared.append(action)
        return action

    def print_help(self, file: Any = None) -> None:
        """Write the help. A standard output that cannot be written, as on a full disk, is an error."""
        if file is None:
            write_text(self.format_help())
        else:
            super().print_help(file)

    def error(self, message: str) -> NoReturn:
        """Say *message* in a line with the right word for a wrong one, or else what to read, and exit with status 2."""
        wrong_word, *known_words = (
            re.findall(r"'([^']*)'", message) if "invalid choice: " in message else [""]
        )
        hint = (
            right_word("a command line", wrong_word)
            or right_word("a form", wrong_word)
            or meant(wrong_word, known_words)
        )
        if "required: " in message and self._examples:
            hint = f"; for example: {self._examples[0]}"
        is_answered = (
            hint or ": use " in message or "did you mean" in message or "it is an option of" in message
        )
        self.exit(
            USAGE,
            harmless(f"{self.prog}: {message}{hint if is_answered else f'; see {self.prog} --help'}") + "\n",
        )

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Refuse an unknown option, before argparse complains that the required one is missing.

        Raises:
            SystemExit: there is an unknown option. The message names it and the nearest right one.
        """
        options = re.findall(r"--?\w[\w-]*", self.format_usage())
        for word in itertools.takewhile(lambda word: word != "--", words):
            option = word.partition("=")[0]
            is_option = (option.startswith("--") and " " not in word) or re.fullmatch("-[A-Za-z]", option)
            if is_option and option not in self._option_string_actions:
                hint = right_word("a command line", option)
                if not hint:
                    hint = _owners(option) or meant(option, options)
                elif {*re.findall(r"--[\w-]+", hint)} - {*options}:
                    hint = ""  # this command has no such option under any name
                self.error(f"unrecognized arguments: {option}{hint}")


def _owners(option: str) -> str:
    """A suggestion after an *option* that only other commands have, or nothing if none has it."""
    commands = whole_parser().commands.items()
    owners = [name for name, command in commands if option in command._option_string_actions]
    return f": it is an option of crosswalk {', '.join(owners[:3])}" if owners else ""


def _terminal_width() -> int:
    """The columns for a line of help: two fewer than the terminal has, 78 where that is unknown."""
    try:
        width = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        width = 0
    return (width or 80) - 2


def _build(*, command: str | None = None, whole: bool = False) -> Parser:
    """The parser with the arguments of *command*, or of every command if it is *whole*, else with their names alone."""
    parser = Parser(
        prog="crosswalk", description="Any LLM server's answer as one canonical response.", epilog=EXIT_STATUS
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    # Without "prog", argparse would ask how wide the terminal is to find it.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=parser.prog)
    parser.commands = commands.choices
    if command in COMMANDS:
        _add_own(command, commands)
        return parser
    installed_by_name = installed_commands()
    if command is not None and command in installed_by_name:
        installed_by_name[command].add_to(commands)
        return parser
    for name, summary in COMMANDS.items():
        if whole:
            _add_own(name, commands)
        else:
            commands.add_parser(name, help=summary)
    for name, installed_command in installed_by_name.items():
        if name not in COMMANDS:
            installed_command.name_in(commands)
    return parser


def _add_own(name: str, commands: argparse._SubParsersAction[Any]) -> None:
    command = import_module(f"crosswalk.cli.{name.replace('-', '_')}")
    parser = commands.add_parser(name, help=COMMANDS[name])
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from crosswalk.version import __version__  # it takes longer than all the rest of the parser

        write_text(f"crosswalk {__version__}\n")
        parser.exit()

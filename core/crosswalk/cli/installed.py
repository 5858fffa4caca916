"""Commands of other packages, found through the entry-point group ``crosswalk.commands``.

:mod:`crosswalk.commands` describes such a command. It is imported only when it is the one that was typed.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from crosswalk.cli.terminal import OutputError, UsageError
from crosswalk.plain_errors import CrosswalkError, PluginError
from crosswalk.plugin.installed import Point, installed_points

GROUP: Final = "crosswalk.commands"
OPTIONAL: Final = {
    "batch": "map large logs to columns, in several processes",
    "serve": "serve any model to clients of any API",
}
"""The commands that come with Crosswalk's extras."""
_log = logging.getLogger(__name__)


@attrs.frozen(eq=False, repr=False)
class InstalledCommand:
    """A command as its distribution registered it. It has not been imported."""

    name: str
    point: Point

    @property
    def summary(self) -> str:
        """The line about it in the list of commands."""
        shipped = OPTIONAL if self._distribution == "crosswalk-llm" else {}
        return shipped.get(self.name) or f"from {self._distribution}"

    def add_to(self, commands: argparse._SubParsersAction[Any]) -> None:
        """Import the command and let it add its arguments.

        Raises:
            PluginError: it cannot be imported, or lacks a function.
        """
        result = self.load()
        describe, run = getattr(result, "add_arguments", None), getattr(result, "run", None)
        if not callable(describe) or not callable(run):
            raise self._broken("it has no add_arguments() and run()")
        description = (result.__doc__ or "").strip()
        parser = commands.add_parser(self.name, help=self.summary, description=description)
        self._tried(lambda: describe(parser))
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
            _log.debug("command %s", self.name, exc_info=True)
            raise self._broken(f"{type(error).__name__}: {error}") from error

    def _broken(self, cause: str) -> PluginError:
        raw = " ".join(cause.split())  # one line
        distribution = self._distribution
        return PluginError(
            f"the command of {distribution} is broken: {raw}", plugin=self.name, distribution=distribution
        )

    @property
    def _distribution(self) -> str:
        distribution = self.point.dist
        return "an unknown package" if distribution is None else distribution.name


def installed_commands() -> Mapping[str, InstalledCommand]:
    """The commands of installed distributions by name. If two have the same name, the first counts."""
    results: dict[str, InstalledCommand] = {}
    for point in installed_points(GROUP):
        results.setdefault(point.name, InstalledCommand(point.name, point))
    return dict(sorted(results.items()))

"""``crosswalk providers``: the installed providers, and whether each works."""

from __future__ import annotations

import argparse
from typing import Any

import orjson

from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import OK, write_json, write_table
from crosswalk.errors import PluginError
from crosswalk.plugin.registry import ProviderEntry, registry

_HEADINGS = ("provider", "title", "state")
_LONG_HEADINGS = (*_HEADINGS, "distribution", "endpoints", "speaks too", "asks")


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="List every installed provider. One that is broken is a row with its error.",
        epilog="Exit status: 0, also where a provider is broken: the list is what was asked for.",
        examples=("crosswalk providers",),
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="show the distribution, the endpoints and the formats of each, too",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(arguments: argparse.Namespace) -> int:
    """Write a row for every provider. Each that is not blocked is imported to see whether it works."""
    rows = [_row(entry) for entry in registry.providers()]
    if arguments.json:
        write_json(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        headings = _LONG_HEADINGS if arguments.long else _HEADINGS
        write_table(headings, [_cells(row)[: len(headings)] for row in rows])
    return OK


def _row(entry: ProviderEntry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": entry.name,
        "title": None,
        "distribution": entry.distribution,
        "version": entry.version,
        "target": entry.target,
        "overrides": list(entry.overrides),
        "endpoints": [],
        "speaks": [],
        "builds_requests": False,
        "documentation": None,
        "ignored": [],
        "state": "blocked" if entry.blocked else "ok",
        "error": None,
    }
    if not entry.blocked:
        try:
            mapper = registry.mapper(entry.name)
        except PluginError as error:
            return {**row, "state": "broken", "error": str(error)}
        info = mapper.info
        row.update(title=info.title, endpoints=list(info.endpoints), documentation=info.documentation)
        row.update(ignored=list(mapper.ignored))
        row.update(speaks=list(info.speaks), builds_requests=mapper.build_request is not None)
    return row


def _cells(row: dict[str, Any]) -> list[str]:
    distribution = " ".join(filter(None, (row["distribution"], row["version"])))
    state = f"{row['state']}: {row['error']}" if row["error"] else row["state"]
    if row["ignored"]:
        state += f", overridden by {' '.join(row['ignored'])}: broken, ignored"
    elif row["overrides"]:
        state += f", overrides {' '.join(row['overrides'])}"
    requests_cell = "yes" if row["builds_requests"] else ""
    return [
        row["name"],
        row["title"] or "",
        state,
        distribution,
        " ".join(row["endpoints"]),
        " ".join(row["speaks"]),
        requests_cell,
    ]

"""``crosswalk samples``: a log of exchanges to try the commands on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import OK, UsageError, say
from crosswalk.drafts import written

SAMPLE_LOG: Final = Path(__file__).parent / "sample_log.jsonl"
"""Answers of several providers in the log of a gateway. Times, models, tenants and latencies are made up."""


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Write DIR/log.jsonl: recorded answers of several providers as a gateway would log them. Times, models,
            tenants and latencies are made up. A log that is there already is left alone.""",
        examples=("crosswalk samples samples/",),
    )
    parser.add_argument("folder", metavar="DIR", help="the folder; it is made where it is missing")


def run(arguments: argparse.Namespace) -> int:
    """Write the sample log into the folder that *arguments* names, without replacing an existing file.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    target = Path(arguments.folder) / "log.jsonl"
    try:
        with written(target, replace=False) as out:
            out.write(SAMPLE_LOG.read_bytes())
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror or error}") from None
    say(f"{target}: try crosswalk report {target} --by vendor,model")
    return OK

"""``crosswalk normalize``: recorded answers to canonical JSON."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial

from crosswalk.cli.answers import (
    Failed,
    Guess,
    MappingTally,
    deltas_of,
    failed,
    guesses,
    response_of,
    total_size,
)
from crosswalk.cli.arguments import CAPTURES_HELP, add_reading, zoned_time
from crosswalk.cli.inputs import (
    InputFault,
    InputItem,
    InputSource,
    RecordedAnswer,
    find_sources,
    records_of,
)
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import EXIT_STATUS, Progress, UsageError, write_json
from crosswalk.codec.canonical import to_json
from crosswalk.errors import CrosswalkError, MappingError
from crosswalk.plugin.registry import registry


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Map recorded answers, bodies or streams, to canonical JSON. {CAPTURES_HELP}
            A record is a line of JSON Lines: an answer by itself, an object with "body" (text, or a JSON object) or
            "body_base64" and perhaps "provider", "status" and "id", or a line of the results of OpenAI's or
            Anthropic's batches. What cannot be mapped is reported on standard error
            with its place, and the rest goes on. An error that the provider sent is an answer like any
            other.""",
        epilog=f"{EXIT_STATUS} An id that the provider did not send is made from the bytes: the same each time.",
        examples=(
            "crosswalk normalize answer.response.json",
            "crosswalk normalize --provider openai log.jsonl > canonical.jsonl",
            "curl -s localhost:11434/api/chat -d @question.json | crosswalk normalize",
        ),
    )
    add_reading(parser)
    parser.add_argument(
        "--format",
        choices=("json", "jsonl"),
        help="json: one object, or an array of many; jsonl: a line each (default: json for one answer, "
        "else jsonl)",
    )
    parser.add_argument(
        "--indent",
        action=argparse.BooleanOptionalAction,
        help="break and indent what --format json writes (default: yes)",
    )
    parser.add_argument(
        "--stream", action="store_true", help="write the deltas instead of the response, as they come"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="write files into this folder instead, for crosswalk diff: a capture's canonical JSON as CASE.json, "
        'a log again, with a "response" in each record; an earlier one is replaced',
    )
    parser.add_argument("--raw", action="store_true", help="write the provider's own events too")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="where mapping fails, write what was received as an error response",
    )
    parser.add_argument(
        "--created",
        type=zoned_time,
        metavar="TIME",
        help="the time of answers without a time, in ISO 8601 with a zone (default: now)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Map every answer that *arguments* names.

    Raises:
        UsageError: the options contradict each other, or a file is missing.
        PluginError: the named provider cannot be used.
    """
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    if arguments.output is not None:
        return _store(arguments)
    sources, faults = find_sources(arguments.paths, records=records_of(arguments))
    writer = _writer(arguments, sources)
    work = partial(_mapped, arguments, writer.pretty)
    with Progress("normalizing", total_size(sources)) as progress, writer:
        tally = MappingTally(progress, "mapped")
        for one in tally.results(sources, faults, arguments, work):
            writer.write(one)
    tally.write_total()
    return tally.status


def _mapped(
    arguments: argparse.Namespace, pretty: bool, _: InputItem, answer: RecordedAnswer | InputFault
) -> Iterator[bytes | Failed | Guess]:
    """The canonical JSON of *answer*, piece by piece, or the reason why there is none."""
    if isinstance(answer, InputFault):
        yield failed(answer)
        return
    keep_raw = arguments.raw
    try:
        if arguments.stream:
            yield from map(to_json, deltas_of(answer, arguments, keep_raw=keep_raw))
        else:
            response = response_of(answer, arguments, keep_raw=keep_raw)
            yield to_json(response, indent=pretty, include_raw=keep_raw)
            yield from guesses(response)
    except CrosswalkError as error:
        yield failed(answer, error)
        if arguments.partial and isinstance(error, MappingError) and error.partial:
            yield to_json(error.partial, indent=pretty, include_raw=keep_raw)


def _store(arguments: argparse.Namespace) -> int:
    if arguments.stream or arguments.partial or arguments.format or arguments.indent is not None:
        raise UsageError("--output writes files: without --stream, --partial, --format and --indent")
    from crosswalk.cli.stored import store_all

    return store_all(arguments)


def _writer(arguments: argparse.Namespace, sources: list[InputSource]) -> _Writer:
    # A folder counts as many answers, even if it holds one today.
    has_folder = any(os.path.isdir(path) for path in arguments.paths)
    is_one = len(sources) == 1 and not sources[0].records and not has_folder
    if arguments.stream and (arguments.partial or arguments.raw or arguments.format == "json"):
        raise UsageError("--stream writes deltas as JSON Lines: without --partial, --raw and --format json")
    chosen_format = arguments.format or ("json" if is_one and not arguments.stream else "jsonl")
    if chosen_format == "jsonl":
        if arguments.indent:
            raise UsageError("JSON Lines have no indentation; pass --format json")
        return _Writer(is_array=False, pretty=False)
    return _Writer(is_array=not is_one, pretty=arguments.indent is not False)


class _Writer:
    """Writes JSON values to standard output, each as soon as it is known.

    Args:
        is_array: whether they are the items of one array; otherwise each has its own line.
        pretty: whether each is indented.
    """

    def __init__(self, *, is_array: bool, pretty: bool) -> None:
        self.pretty = pretty
        self._is_array = is_array
        self._count = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An interrupted array stays open, so that it does not look complete.
        if self._is_array and kind is None:
            write_json(b"\n]\n" if self._count else b"[]\n")

    def write(self, value: bytes) -> None:
        """Write one JSON value."""
        self._count += 1
        if self._is_array:
            write_json((b"[\n" if self._count == 1 else b",\n") + value)
        else:
            write_json(value + b"\n")

"""``crosswalk convert``: recorded answers in another wire format, with a report of every loss."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import attrs
import orjson

from crosswalk.cli.answers import Failed, MappingTally, deltas_of, failed, total_size
from crosswalk.cli.arguments import CAPTURES_HELP, add_reading
from crosswalk.cli.inputs import InputFault, InputItem, RecordedAnswer, find_sources, records_of
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import OutputError, Progress, UsageError, write_json
from crosswalk.convert import WireForm, convert, convert_stream
from crosswalk.errors import CrosswalkError
from crosswalk.plugin.registry import registry

_FORMS: Final = tuple(form.value for form in WireForm)


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Write recorded answers, of any provider that Crosswalk reads, as another API would: a body on a
            line for each, or one stream. What the form cannot express is listed on standard error, by canonical
            path; a field that is not listed is the same when it is read back. {CAPTURES_HELP}""",
        epilog="Exit status: 0 all were converted, whatever the form cannot express; 1 some could not be; 2 nothing "
        "could be tried.",
        examples=("crosswalk convert answer.response.json --to openai-chat",),
    )
    add_reading(parser)
    parser.add_argument(
        "--to",
        required=True,
        choices=_FORMS,
        metavar="FORM",
        help=f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}",
    )
    parser.add_argument(
        "--stream", action="store_true", help="write server-sent events, as they come; for one answer"
    )
    parser.add_argument(
        "--carry",
        action="store_true",
        help="add a member 'crosswalk' with the fields that the form does not have, for a later conversion",
    )
    parser.add_argument(
        "--losses",
        choices=("refuse", "report"),
        default="refuse",
        help="refuse (default) or report a dangerous loss, such as a tool call in a form without calls",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write what the form cannot express there as JSON Lines, a line for each answer; '-' writes it to standard "
        "output in place of the answers",
    )


def run(arguments: argparse.Namespace) -> int:
    """Convert every answer that *arguments* names.

    Raises:
        UsageError: the options contradict each other, a file is missing, or the report cannot be written.
        PluginError: the named provider, or that of the target format, cannot be used.
    """
    form = WireForm.of(arguments.to)
    for provider in (arguments.provider, form.provider):
        if provider is not None:
            registry.mapper(provider)
    sources, faults = find_sources(arguments.paths, records=records_of(arguments))
    has_folder = any(Path(path).is_dir() for path in arguments.paths)
    if arguments.stream and (len(sources) != 1 or sources[0].records or has_folder):
        raise UsageError("--stream writes one stream: name one answer")
    work = partial(_converted, arguments, form)
    with ExitStack() as stack:
        file = _open(arguments.report, stack)
        progress = stack.enter_context(Progress("converting", total_size(sources)))
        tally = MappingTally(progress, "converted")
        for one in tally.results(sources, faults, arguments, work):
            if isinstance(one, _Reported):
                _tell(one, file, progress, alone=arguments.report == "-")
            elif arguments.report != "-":
                write_json(one)
    tally.write_total()
    return tally.status


def _open(report_path: str | None, stack: ExitStack) -> BinaryIO | None:
    """The file of the report, or ``None`` if no report is written to a file."""
    if report_path is None or report_path == "-":
        return None
    try:
        return stack.enter_context(
            Path(report_path).open("wb", buffering=0)
        )  # nothing is left to be written at its end
    except OSError as error:
        raise UsageError(f"{report_path}: {error.strerror or type(error).__name__}") from None


@attrs.frozen
class _Reported:
    """The losses of one answer.

    Attributes:
        line: as JSON.
        text: for people, in lines.
    """

    line: bytes
    text: tuple[str, ...]


def _converted(
    arguments: argparse.Namespace, form: WireForm, _: InputItem, answer: RecordedAnswer | InputFault
) -> Iterator[bytes | _Reported | Failed]:
    """*answer* in the other format, piece by piece, and its losses; or the reason why it cannot be converted."""
    if isinstance(answer, InputFault):
        yield failed(answer)
        return
    carry, losses = arguments.carry, arguments.losses
    try:
        if arguments.stream:
            stream = convert_stream(deltas_of(answer, arguments), form, carry=carry, losses=losses)
            yield from stream
            report = stream.report
        else:
            response = deltas_of(answer, arguments).until_done()
            conversion = convert(
                response, form, carry=carry, losses=losses
            )  # without a word of ours about who was guessed
            yield conversion.value + b"\n"
            report = conversion.report
    except CrosswalkError as error:
        yield failed(answer, error)
        return
    first_line, *other_lines = str(report).splitlines()
    line = orjson.dumps({"place": answer.label, **report.to_jsonable()}) + b"\n"
    yield _Reported(line, (f"{answer.label}: {first_line}", *other_lines))


def _tell(reported: _Reported, file: BinaryIO | None, progress: Progress, *, alone: bool) -> None:
    if file is not None:
        try:
            file.write(reported.line)
        except OSError as error:
            raise OutputError(f"{file.name}: {error.strerror or type(error).__name__}") from None
    elif alone:
        write_json(reported.line)
    else:
        for text in reported.text:
            progress.say(text)

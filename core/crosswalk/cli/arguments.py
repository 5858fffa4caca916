"""The arguments of all commands. Importing this module loads no command."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Any

from crosswalk.cli.terminal import EXIT_STATUS, UsageError

if TYPE_CHECKING:
    from crosswalk.records import Layout


# ---------------------------------------------------------------------------------- values
# Types for :mod:`argparse` that check the values on a command line.


def whole_number(text: str) -> int:
    """A whole number above 0.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text!r}")
    return int(text)


def http_status(text: str) -> int:
    """An HTTP status.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and 100 <= int(text) <= 599):
        raise argparse.ArgumentTypeError(f"not an HTTP status: {text!r}")
    return int(text)


def zoned_time(text: str) -> datetime:
    """A time in ISO 8601, with its zone.

    Raises:
        ArgumentTypeError: it is something else, or has no zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(f"not an ISO 8601 time with a zone: {text!r}")
    return time


# --------------------------------------------------------------------------------- layouts
# ``--layout`` and ``--field``: the places of facts in the lines of a log.


def add_layout_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a log's layout."""
    parser.add_argument(
        "--layout",
        metavar="NAME",
        help="the layout of the log's lines, or your own in a file that ends in .toml (default: found out)",
    )
    parser.add_argument(
        "--field",
        action="append",
        default=[],
        type=_field,
        metavar="NAME=PATH",
        help="the path of a fact in a line, as in response=log.answer or created=ts@ms; may be repeated",
    )


def layout_from(arguments: argparse.Namespace) -> Layout | None:
    """The layout that *arguments* name, or ``None`` to detect the layout of each line.

    Raises:
        ConfigurationError: it does not exist, or cannot be read.
        UsageError: it names a path twice.
    """
    if arguments.layout is None and not arguments.field:
        return None
    from crosswalk.records import load_layout, with_fields

    layout = None if arguments.layout is None else load_layout(arguments.layout)
    fields = dict(arguments.field)
    if len(fields) < len(arguments.field):
        raise UsageError("--field: the same field twice")
    return with_fields(layout, fields) if fields else layout


def _field(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("a field is a name, = and a path, as in created=ts@ms")
    return name, path


# ------------------------------------------------------------------------------------ live
# The arguments of the commands that ask a server. Importing this module loads no command.


_KEY_HELP = """\
The API key, if one is needed, is read from the environment: CROSSWALK_<PROVIDER>_API_KEY, or the provider's own
variable.
"""
_EXIT_HELP = (
    "Exit status: 0 all went well, 1 something failed, 2 nothing could be tried, 130 ended by Ctrl-C."
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _ask(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "ask",
        help="ask a model and show its answer as it arrives",
        description=f"""Ask a model. The answer goes to standard output while it comes; reasoning, and in the end
            tokens, speed, latency and time to the first token, go to standard error. Ctrl-C ends the answer and
            keeps what came. {_KEY_HELP}""",
        epilog=_EXIT_HELP,
    )
    _add_prompt(parser)
    _add_asking(parser)
    _add_service(parser)
    parser.add_argument(
        "--json", action="store_true", help="write the canonical response instead, when it is complete"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="send nothing: show what would be sent otherwise than asked, or with --json the whole request",
    )
    _add_stream(parser)
    _add_display(parser, panel=True)


def _models(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "models",
        help="list the models of a server",
        description=f"List the models of a server, one on each line. {_KEY_HELP}",
        epilog=_EXIT_HELP,
    )
    parser.add_argument(
        "provider",
        nargs="?",
        metavar="NAME",
        help="the provider id (default: the settings' default provider; with --base-url, the server is asked)",
    )
    _add_address(parser)
    parser.set_defaults(run=_list_models)


def _list_models(arguments: argparse.Namespace) -> int:
    from crosswalk.cli.ask import list_models

    return list_models(arguments)


def _chat(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "chat",
        help="talk to a model, in a session that is saved and resumed",
        description=f"""Talk to a model: each line is a message. Ctrl-C ends an answer, Ctrl-D the session. A line
            that begins with / is a command: /system TEXT, /retry, /save FILE, /quit; for a message that
            begins so, write //. {_KEY_HELP}""",
        epilog=_EXIT_HELP,
    )
    parser.add_argument("server", nargs="?", metavar="NAME[:MODEL]", help="the same as --provider")
    _add_asking(parser)
    _add_service(parser)
    parser.add_argument(
        "--session", metavar="FILE", help="go on with the session in this file, and save it after each answer"
    )
    _add_stream(parser)
    _add_display(parser, panel=False)


def _record(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "record",
        help="record a live exchange as a capture",
        description=f"""Ask a server once and keep its answer, byte for byte, as a capture: CASE.response.json for a
            whole answer, CASE_stream.response.sse or .ndjson for a stream, the request's body next to it, and a line
            in MANIFEST.jsonl. normalize, check, explain and diff read it. Every answer is recorded, an
            error too. No request is repeated, no file is overwritten, and no credential is written. {_KEY_HELP}""",
        epilog=_EXIT_HELP,
    )
    _add_prompt(parser)
    _add_asking(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder of the captures")
    parser.add_argument(
        "--name",
        required=True,
        metavar="CASE",
        help="what to call it: letters, digits, and - or _ between them",
    )
    form_group = parser.add_mutually_exclusive_group()
    form_group.add_argument(
        "--stream",
        dest="forms",
        action="store_const",
        const=(True,),
        help="ask for a stream (the default)",
    )
    form_group.add_argument(
        "--no-stream", dest="forms", action="store_const", const=(False,), help="ask for a whole answer"
    )
    form_group.add_argument(
        "--both",
        dest="forms",
        action="store_const",
        const=(False, True),
        help="ask for both, one after the other; if their content is the same, they are a pair, which check compares",
    )
    parser.set_defaults(forms=(True,))


def _demo(commands: argparse._SubParsersAction[Any]) -> None:
    commands.add_parser(
        "demo",
        help="see ask at work, without a model and without a network",
        description="""Ask a server in this process, which replays recorded answers of Ollama and vLLM over HTTP.
            You need no model and no network.""",
        epilog=_EXIT_HELP,
    )


def _add_prompt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[NAME[:MODEL]] PROMPT",
        help="what to ask, in quotes; '-' or nothing for standard input. A provider before it is that of --provider",
    )


def _add_asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--provider",
        metavar="NAME[:MODEL]",
        help="the provider id (default: the settings' default provider; with --base-url, the server is asked)",
    )
    parser.add_argument(
        "--model",
        "-m",
        metavar="NAME",
        help="the model, as the provider calls it (default: CROSSWALK_<PROVIDER>_MODEL, else the server's only one)",
    )
    _add_address(parser)
    parser.add_argument("--system", "-s", metavar="TEXT", help="the system message")
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="the most tokens that the answer may have"
    )
    parser.add_argument("--temperature", type=float, metavar="X", help="how random the answer is, from 0")
    parser.add_argument("--top-p", type=float, metavar="X", help="sample from this share of likely tokens")
    parser.add_argument("--top-k", type=int, metavar="N", help="sample from this many likely tokens")
    parser.add_argument("--seed", type=int, metavar="N", help="make sampling repeatable")
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end the answer here; may be repeated"
    )
    parser.add_argument("--reasoning-effort", choices=_EFFORTS, help="how much to reason")
    parser.add_argument(
        "--unsupported",
        choices=("raise", "drop"),
        default="raise",
        help="refuse an option that the provider does not have, or leave it out and say so (default: raise)",
    )
    parser.add_argument(
        "--unknown",
        choices=("raise", "keep"),
        default="keep",
        help="refuse an event or finish word that no mapping knows, or keep it (default: keep)",
    )


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="where the server is (default: CROSSWALK_<PROVIDER>_BASE_URL, else the provider's own address)",
    )


def _add_service(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="PROVIDER[:MODEL]",
        help="what to ask when that fails; may be repeated (default model: the same)",
    )
    parser.add_argument(
        "--attempts", type=int, metavar="N", help="how often to ask one server at most (default: 3)"
    )


def _add_stream(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="show the answer while it comes, or ask for it whole (default: while it comes)",
    )


def _add_display(parser: argparse.ArgumentParser, *, panel: bool) -> None:
    parser.add_argument(
        "--reasoning",
        action=argparse.BooleanOptionalAction,
        help="show the model's reasoning on standard error (default: where that is a terminal)",
    )
    parser.add_argument(
        "--panel",
        action=argparse.BooleanOptionalAction,
        default=panel,
        help=f"show tokens, speed and latency in the end (default: {'yes' if panel else 'no'})",
    )


LIVE_COMMANDS = {"ask": _ask, "models": _models, "chat": _chat, "record": _record, "demo": _demo}
"""The function that adds each command to the parser."""


# -------------------------------------------------------------------------------- recorded
# The arguments of the commands that read recorded answers.


_CAPTURES_HELP = """\
A capture is CASE.response.json (or .sse, .ndjson, .txt); further facts are read from
MANIFEST.jsonl or CASE.meta.json next to it. Folders are searched; requests and hidden folders are left
out.
"""


def _normalize(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "normalize",
        help="map recorded answers to canonical JSON",
        description=f"""Map recorded answers, bodies or streams, to canonical JSON. {_CAPTURES_HELP}
            A record is a line of JSON Lines: an answer by itself, an object with "body" (text, or a JSON object) or
            "body_base64" and perhaps "provider", "status" and "id", or a line of the results of OpenAI's or
            Anthropic's batches. What cannot be mapped is reported on standard error
            with its place, and the rest goes on. An error that the provider sent is an answer like any
            other.""",
        epilog=f"{EXIT_STATUS} An id that the provider did not send is made from the bytes: the same each time.",
    )
    _add_reading(parser)
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


def _providers(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "providers",
        help="list the installed providers",
        description="List every installed provider. One that is broken is a row with its error.",
        epilog="Exit status: 0, also where a provider is broken: the list is what was asked for.",
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="show the distribution, the endpoints and the formats of each, too",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def _check(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "check",
        help="test a provider's mapping on captures",
        description=f"""Run the conformance kit over captures: nothing lost, framing does not matter, never
            silently wrong, deterministic, nothing invented, and body and stream of one exchange agree. {_CAPTURES_HELP}
            Captures of other endpoints than the provider's are skipped and counted.""",
        epilog="Exit status: 0 nothing is broken, 1 something is, 2 nothing could be tried.",
    )
    _add_paths(parser, "captures, or folders of them")
    parser.add_argument("--provider", metavar="NAME", help="the provider id")
    parser.add_argument(
        "--corpus",
        nargs="?",
        const="",
        metavar="NAME",
        help="check the captures, statements and canonical JSON that come with Crosswalk; those of NAME, if given",
    )
    parser.add_argument(
        "--answers",
        metavar="FOLDER",
        help="with --corpus: check what another mapper wrote, canonical JSON in FOLDER/NAME/CASE.json",
    )
    parser.add_argument(
        "--sample",
        type=_sample,
        default=40,
        metavar="N|all",
        help="leaves and cuts to try per capture, the same ones every time (default: 40)",
    )
    parser.add_argument(
        "--exceptions",
        metavar="FILE",
        help="problems that do not count, a line each: 'CHECK: PATH: reason' or 'CHECK: CAPTURE: reason'; "
        "the brackets behind a problem show the first two",
    )
    _add_jobs(parser)


def _explain(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "explain",
        help="show where each field of an answer went",
        description="""Show where each field of one recorded answer went. The command changes each field and maps the
            answer again, so it works for any plugin.""",
        epilog=EXIT_STATUS,
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="a recorded answer; '-' or nothing for standard input",
    )
    _add_provider(parser, or_else="found out from the answer")
    _add_status(parser)
    parser.add_argument(
        "--event",
        type=whole_number,
        metavar="N",
        help="explain only the N-th event of a stream: the time it takes grows with the square of the events",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def _table(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "table",
        help="list which wire field is which canonical field, by provider",
        description=f"""Write which path of the providers' answers lands in which canonical paths, found out by
            changing every leaf of captures and mapping again. {_CAPTURES_HELP}""",
        epilog=f"""Without PATH the captures that the provider's package ships in a folder 'captures' are
            taken, else those in tests/captures/PROVIDER below the working directory, else those that come with Crosswalk.
            With several providers, PATH is a folder that has one for each, by its name. {EXIT_STATUS}""",
    )
    parser.add_argument(
        "provider",
        nargs="?",
        metavar="PROVIDER",
        help="the provider id, or several with commas between them (default: all that are installed)",
    )
    _add_paths(parser, "captures, or folders of them")
    parser.add_argument(
        "--format", choices=("text", "markdown", "html"), default="text", help="(default: text)"
    )
    parser.add_argument(
        "--html",
        dest="format",
        action="store_const",
        const="html",
        help="the same as --format html: one page that needs no other file",
    )


def _diff(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "diff",
        help="map stored answers again and show the changes of a new mapping",
        description=f"""Map recorded answers again and show, field by field, what differs from the canonical JSON
            that was stored: what an upgrade changes on your own log. {_CAPTURES_HELP}
            A record is a line of JSON Lines with its stored "response" in it. Ids and times that were made up are
            no difference. Values are shortened.""",
        epilog="Exit status: 0 nothing differs but what is accepted, 1 something does or could not be compared, 2 "
        "nothing could be compared.",
    )
    _add_reading(parser, or_else="the record's provider, or the one that mapped the stored answer")
    parser.add_argument(
        "--stored",
        metavar="DIR",
        help="the folder that crosswalk normalize --output wrote for the same paths, or crosswalk batch (then without "
        "PATH, or with the folder of another batch), or one of snapshots",
    )
    parser.add_argument("--summary", action="store_true", help="leave out the lines for each capture")
    parser.add_argument(
        "--accept", metavar="FILE", help="changes that count as none, as --write-accepted writes them"
    )
    parser.add_argument(
        "--write-accepted",
        metavar="FILE",
        help="accept every change: write them there, for --accept; differences then do not make it fail",
    )
    parser.add_argument("--html", metavar="FILE", help="write the changes there too, as a page")
    parser.add_argument(
        "--json",
        action="store_true",
        help="write JSON Lines: one for each capture that differs, then the summary",
    )


def _new_plugin(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "new-plugin",
        help="write the project of a new provider plugin",
        description="""Write a complete project for a provider plugin: package, entry point, two captures of an
            invented API, conformance test and snapshots. Its tests pass at once; make it yours from there.""",
        epilog="Exit status: 0 it is written, 2 it is not. Nothing is ever written over.",
    )
    parser.add_argument(
        "name", metavar="NAME", help="the provider id: lower-case letters, digits, and - or _ between them"
    )
    parser.add_argument(
        "--directory", metavar="DIR", help="where to write it (default: crosswalk-NAME, here)"
    )
    parser.add_argument(
        "--captures",
        metavar="DIR",
        help="take the captures in DIR instead of the examples, and draft a statement for each from its bytes",
    )


def _parse_answer(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "parse",
        help="read a validated JSON value from a model's text",
        description="""Read a value of a schema out of a text: directly, extracted from fences and prose, or repaired;
            or give the reason. Write the value, the stage that gave it and the reason as one JSON object.""",
        epilog="Exit status: 0 there is a valid value, 1 there is none, 2 nothing could be tried.",
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the text; '-' or nothing for standard input"
    )
    parser.add_argument(
        "--schema",
        default="StructuredResponse",
        metavar="NAME",
        help="StructuredResponse (the default), StructuredResponseV2, or module:Class for an attrs class, a Schema, "
        "SchemaVersions or a parser of yours (the module is imported), or a file with a JSON Schema, such as book.json",
    )
    parser.add_argument(
        "--partial",
        choices=("refuse", "close", "accept"),
        default="refuse",
        help="what to do with a text that ends in the middle: refuse it, give it where only brackets are missing, or "
        "give what is there; what is given is marked (default: refuse)",
    )
    parser.add_argument(
        "--value", action="store_true", help="write the value alone; the stage goes to standard error"
    )


_WIRE_FORMS = (
    "openai-chat",
    "openai-responses",
    "anthropic",
    "ollama",
    "ollama-generate",
    "gemini",
    "openai-completions",
)
"""The values of ``WireForm``, which takes long to import."""


def _convert(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "convert",
        help="write recorded answers in another wire form and list what it cannot express",
        description=f"""Write recorded answers, of any provider that Crosswalk reads, as another API would: a body on a
            line for each, or one stream. What the form cannot express is listed on standard error, by canonical
            path; a field that is not listed is the same when it is read back. {_CAPTURES_HELP}""",
        epilog="Exit status: 0 all were converted, whatever the form cannot express; 1 some could not be; 2 nothing "
        "could be tried.",
    )
    _add_reading(parser)
    parser.add_argument(
        "--to",
        required=True,
        choices=_WIRE_FORMS,
        metavar="FORM",
        help=f"{', '.join(_WIRE_FORMS[:-1])} or {_WIRE_FORMS[-1]}",
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


def _report(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "report",
        help="tokens, cost, errors and latencies of a log, by model, day and more",
        description="""Count what a log of exchanges holds: tokens, cost, errors by kind, latency percentiles, finish reasons
            and broken tool calls. The input is a raw log, or a folder that crosswalk batch wrote.""",
        epilog="Exit status: 0 the report is written, and exchanges that cannot be read count as errors; 1 a file could "
        "not be read; 2 nothing could be tried.",
    )
    _add_reading(parser)
    parser.add_argument(
        "--by",
        type=_groupings,
        default=["model"],
        metavar="NAMES",
        help="what to group by, with commas between: model, day, hour, vendor, provider, status, finish, error, "
        "session, user, team, tier, tags, tag (each on its own), logged_vendor, or the path of any value in a line, such as "
        "metadata.tenant (default: model)",
    )
    form_group = parser.add_mutually_exclusive_group()
    form_group.add_argument("--csv", action="store_true", help="write CSV")
    form_group.add_argument("--html", action="store_true", help="write a page to look at")
    parser.add_argument(
        "--prices",
        action="store_true",
        help="estimate missing costs by list prices (needs the extra prices)",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="list each exchange that cannot be read, with its place and the reason",
    )
    parser.add_argument("--demo", action="store_true", help="report on the log that comes with Crosswalk")


def _groupings(text: str) -> list[str]:
    from crosswalk.cli.report_rows import GROUPINGS
    from crosswalk.records import parse_path

    names = text.split(",")
    for name in names:
        try:
            parse_path(name)
        except ValueError:
            grouping_names = ", ".join(GROUPINGS)
            raise argparse.ArgumentTypeError(
                f"{name!r} is neither a path nor one of {grouping_names}"
            ) from None
    return names


def _samples(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "samples",
        help="write a sample log to try the commands on",
        description="""Write DIR/log.jsonl: recorded answers of several providers as a gateway would log them. Times, models,
            tenants and latencies are made up. A log that is there already is left alone.""",
        epilog=EXIT_STATUS,
    )
    parser.add_argument("folder", metavar="DIR", help="the folder; it is made where it is missing")


def _completion(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "completion",
        help="write a completion script for your shell",
        description="""Write a script for a shell: put it where the shell looks for completions, or source it. It knows
            the providers that are installed now; write it anew when that changes.""",
        epilog=EXIT_STATUS,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")


def _add_reading(
    parser: argparse.ArgumentParser, or_else: str = "the record's provider, or detected from the answer"
) -> None:
    """Add the arguments of every command that reads many answers."""
    _add_paths(parser, "files and folders; '-' or nothing for standard input")
    _add_provider(parser, or_else=or_else)
    _add_status(parser)
    _add_records(parser)
    _add_jobs(parser)
    _add_unknown(parser)


def _add_paths(parser: argparse.ArgumentParser, help: str, nargs: str = "*") -> None:
    parser.add_argument("paths", nargs=nargs, metavar="PATH", help=help)


def _add_provider(parser: argparse.ArgumentParser, *, or_else: str | None) -> None:
    text = "the provider id" + (f" (default: {or_else})" if or_else else "")
    parser.add_argument("--provider", required=or_else is None, metavar="NAME", help=text)


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status",
        type=http_status,
        metavar="N",
        help="the HTTP status (default: the status in the manifest or the record, else 200)",
    )


def _add_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--records",
        action=argparse.BooleanOptionalAction,
        help="read JSON Lines of recorded answers (default: where a file's name ends in .jsonl)",
    )
    add_layout_arguments(parser)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs",
        type=whole_number,
        default=1,
        metavar="N",
        help="processes to use; what is written is the same (default: 1)",
    )


def _add_unknown(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unknown",
        choices=("raise", "keep"),
        default="raise",
        help="refuse an event or finish word that no mapping knows, or keep it (default: raise)",
    )


def _sample(text: str) -> int | None:
    return None if text == "all" else whole_number(text)


RECORDED_COMMANDS = {
    "normalize": _normalize,
    "providers": _providers,
    "check": _check,
    "explain": _explain,
    "table": _table,
    "parse": _parse_answer,
    "diff": _diff,
    "new-plugin": _new_plugin,
    "convert": _convert,
    "report": _report,
    "samples": _samples,
    "completion": _completion,
}
"""The function that adds each command to the parser."""

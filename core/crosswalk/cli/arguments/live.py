"""The arguments of the commands that ask a server. Importing this module loads no command."""

from __future__ import annotations

import argparse
from typing import Any

_KEY = """\
The API key, if one is needed, is read from the environment: CROSSWALK_<PROVIDER>_API_KEY, or the provider's own
variable.
"""
_EXITS = "Exit status: 0 all went well, 1 something failed, 2 nothing could be tried, 130 ended by Ctrl-C."
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


def _ask(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "ask",
        help="ask a model and show its answer as it arrives",
        description=f"""Ask a model. The answer goes to standard output while it comes; reasoning, and in the end
            tokens, speed, latency and time to the first token, go to standard error. Ctrl-C ends the answer and
            keeps what came. {_KEY}""",
        epilog=_EXITS,
    )
    _add_prompt(parser)
    _add_asking(parser)
    _add_service(parser)
    parser.add_argument(
        "--json", action="store_true", help="write the canonical response instead, when it is complete"
    )
    _add_stream(parser)
    _add_display(parser, panel=True)


def _chat(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "chat",
        help="talk to a model, in a session that is saved and resumed",
        description=f"""Talk to a model: each line is a message. Ctrl-C ends an answer, Ctrl-D the session. A line
            that begins with / is a command: /system TEXT, /retry, /save FILE, /quit; for a message that
            begins so, write //. {_KEY}""",
        epilog=_EXITS,
    )
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
            whole answer, CASE_stream.response.sse or .ndjson for a stream, the request's body beside it, and a line
            in MANIFEST.jsonl. normalize, check, explain and diff read it. Whatever the server says is recorded, an
            error too; nothing is asked twice, nothing is ever written over, and no credential is written. {_KEY}""",
        epilog=_EXITS,
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
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--stream",
        dest="forms",
        action="store_const",
        const=(True,),
        help="ask for a stream (the default)",
    )
    forms.add_argument(
        "--no-stream", dest="forms", action="store_const", const=(False,), help="ask for a whole answer"
    )
    forms.add_argument(
        "--both",
        dest="forms",
        action="store_const",
        const=(False, True),
        help="ask for both, one after the other: where they say the same, they are a pair, which check compares",
    )
    parser.set_defaults(forms=(True,))


def _demo(commands: argparse._SubParsersAction[Any]) -> None:
    commands.add_parser(
        "demo",
        help="see ask at work, without a model and without a network",
        description="""Ask a server in this very process that replays, over real HTTP, what an Ollama and a vLLM
            once sent. Neither a model nor a network is needed.""",
        epilog=_EXITS,
    )


def _add_prompt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "prompt",
        nargs="?",
        default="-",
        metavar="PROMPT",
        help="what to ask; '-' or nothing for standard input",
    )


def _add_asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--provider",
        metavar="NAME[:MODEL]",
        help="the provider id (default: the settings' default provider; with --base-url, the server is asked)",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the model, as the provider calls it (default: CROSSWALK_<PROVIDER>_MODEL, else the server's only one)",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="where the server is (default: CROSSWALK_<PROVIDER>_BASE_URL, else the provider's own address)",
    )
    parser.add_argument("--system", metavar="TEXT", help="the system message")
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


LIVE_COMMANDS = {"ask": _ask, "chat": _chat, "record": _record, "demo": _demo}
"""The function that adds each command to the parser."""

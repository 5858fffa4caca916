"""``crosswalk explain``: the canonical place of every leaf of one recorded answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

import attrs
import orjson

from crosswalk.cli.answers import provider_of
from crosswalk.cli.arguments import add_provider, add_status, whole_number
from crosswalk.cli.inputs import read_capture
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import FAILED, OK, Progress, UsageError, say, write_json, write_table
from crosswalk.cli.tracing import Effect, How, Trace, Tracer
from crosswalk.errors import DetectionError
from crosswalk.mapping.detect import fault_of
from crosswalk.plugin.registry import registry
from crosswalk.testing.perturbation import show_path
from crosswalk.text import counted
from crosswalk.types.json import dump_json
from crosswalk.wire.framing import DEFAULT

_MAX_VALUE_LENGTH: Final = 40
_HEADINGS: Final = ("event", "wire", "value", "where", "how")
_EXTENSIONS_PREFIX: Final = "metadata.extensions."


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Show where each field of one recorded answer went. The command changes each field and maps the
            answer again, so it works for any plugin.""",
        examples=("crosswalk explain answer.response.json",),
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="a recorded answer; '-' or nothing for standard input",
    )
    add_provider(parser, or_else="found out from the answer")
    add_status(parser)
    parser.add_argument(
        "--event",
        type=whole_number,
        metavar="N",
        help="explain only the N-th event of a stream: the time it takes grows with the square of the events",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(arguments: argparse.Namespace) -> int:
    """Trace every leaf and write its canonical places. An answer that cannot be mapped makes the command fail.

    Raises:
        UsageError: the file cannot be read, or it has fewer events.
        PluginError: the provider cannot be used.
    """
    capture = read_capture(arguments.file)
    if arguments.status is not None:
        capture = attrs.evolve(capture, status=arguments.status)
    try:
        provider = (
            arguments.provider
            or provider_of(capture.body, arguments.settings.default_provider, capture.server).name
        )
    except DetectionError as error:
        say(f"{arguments.file}: {error}")
        return FAILED
    tracer = Tracer(registry.mapper(provider), capture)
    if not tracer.events:
        fault = fault_of(capture.body, DEFAULT) or "there is no event in it"
        say(f"{arguments.file}: no leaf can be read from its beginning; {fault}")
        return FAILED
    if arguments.event is not None and arguments.event > len(tracer.events):
        raise UsageError(
            f"there is no event {arguments.event}: it has {counted(len(tracer.events), 'event')}"
        )
    traces = _traces(tracer, arguments.event)
    if arguments.json:
        write_json(dump_json([_plain(trace) for trace in traces], option=orjson.OPT_INDENT_2) + b"\n")
    else:
        _write_table(traces)
    if tracer.baseline.error is not None:
        say(f"{arguments.file}: as a whole: {tracer.baseline.error}")
    return FAILED if tracer.baseline.error is not None or any(trace.is_lost for trace in traces) else OK


def _traces(tracer: Tracer, event: int | None) -> list[Trace]:
    leaves = [leaf for leaf in tracer.leaves() if event in (None, leaf.event + 1)]
    traces = []
    with Progress("explaining", len(leaves)) as progress:
        for leaf in leaves:
            traces.append(tracer.trace(leaf))
            progress.advance(1)
    return traces


def _write_table(traces: list[Trace]) -> None:
    rows = [_cells(trace) for trace in traces]
    if not sys.stdout.isatty():
        write_table(_HEADINGS, rows)
        return
    short_rows = [
        [event, wire_path, value, canonical_path.replace(_EXTENSIONS_PREFIX, "…"), how.partition(": ")[0]]
        for event, wire_path, value, canonical_path, how in rows
    ]
    say(f"… is {_EXTENSIONS_PREFIX}; --json says why another value is refused")
    skips_event_column = len({event for event, *_ in rows}) == 1  # the column would say nothing
    write_table(_HEADINGS[skips_event_column:], [row[skips_event_column:] for row in short_rows])


def _plain(trace: Trace) -> dict[str, Any]:
    leaf = trace.leaf
    return {
        "event": leaf.event + 1,
        "path": show_path(leaf.path),
        "value": _value(leaf.value),
        "response": [_plain_effect(effect) for effect in trace.response],
        "delta": [_plain_effect(effect) for effect in trace.delta],
        "refused": trace.refused,
        "lost": trace.is_lost,
    }


def _plain_effect(effect: Effect) -> dict[str, str]:
    return {"path": show_path(effect.path), "how": effect.how}


def _cells(trace: Trace) -> list[str]:
    leaf = trace.leaf
    main_effects = [effect for effect in trace.response if effect.how is not How.OTHERWISE]
    canonical_paths = [show_path(effect.path) for effect in main_effects]
    if not main_effects:
        canonical_paths = [f"delta: {show_path(x.path)}" for x in trace.delta if x.how is not How.OTHERWISE]
    return [
        str(leaf.event + 1),
        show_path(leaf.path),
        _value(leaf.value),
        ", ".join(canonical_paths),
        ", ".join(_words(trace, main_effects)),
    ]


def _words(trace: Trace, main_effects: list[Effect]) -> Iterator[str]:
    yield from dict.fromkeys(effect.how.value for effect in main_effects)
    if trace.is_lost:
        yield "not mapped: the value is lost"
    elif trace.refused and trace.leaf.value is None:
        yield How.EMPTY.value
    elif trace.refused:
        yield f"another value is refused: {trace.refused}"
    elif not main_effects:
        yield "in the delta alone" if any(x.how is not How.OTHERWISE for x in trace.delta) else "implied"


def _value(value: Any) -> str:
    text = dump_json(value).decode()
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"

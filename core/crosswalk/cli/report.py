"""``crosswalk report``: tokens, cost, errors and latencies of a log, grouped by model, day and more."""

from __future__ import annotations

import argparse
import csv
import html
import io
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from crosswalk.cli.answers import (
    LEFT_OUT,
    Failed,
    Guess,
    MappingTally,
    failed,
    guesses,
    response_of,
    total_size,
    vendor_of,
    worked,
)
from crosswalk.cli.arguments import add_reading
from crosswalk.cli.inputs import (
    InputFault,
    InputItem,
    InputSource,
    RecordedAnswer,
    find_sources,
    records_of,
)
from crosswalk.cli.parser import Parser
from crosswalk.cli.proposals import Proposal, Proposals, proposal_of
from crosswalk.cli.report_rows import GROUPINGS, Group, Groups, ReportRow, Spans, row_of
from crosswalk.cli.samples import SAMPLE_LOG
from crosswalk.cli.stored import keeper_of
from crosswalk.cli.terminal import FAILED, OK, Progress, UsageError, harmless, say, write_table, write_text
from crosswalk.errors import CrosswalkError, DetectionError, IncompleteStreamError, MappingError
from crosswalk.plugin.registry import registry
from crosswalk.prices import check_prices, cost_of, price_list, tier_of
from crosswalk.records import LoggedExchange, Record, parse_path, with_facts
from crosswalk.text import counted, meant
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance

# ---------------------------------------------------------------------------------- report
# ``crosswalk report``: tokens, cost, errors and latencies of a log, grouped by model, day and more.


_REPEATING_LAYOUTS: Final = {"claude_code"}
"""The layouts of logs that copy earlier answers into another file, with their ids."""
_MAX_NAMED_MODELS: Final = 10
"""The most models that a note names."""
_MIN_SHOWN_COST: Final = Decimal("0.0001")
"""The least cost that is shown with its figures."""
HEADINGS: Final = (
    "exchanges",
    "errors",
    "% errors",
    "prompt tokens",
    "completion tokens",
    "cached",
    "cost",
    "p50 s",
    "p95 s",
)
_SHORT_HEADINGS: Final = ("n", "err", "% err", "in", "out", "cached", "cost", "p50 s", "p95 s")
"""Those of a terminal, where a table has to fit 80 columns."""
_MIN_WIDE_COLUMNS: Final = 100
"""The least columns of a terminal that show the last percentile."""


def _groupings(text: str) -> list[str]:
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


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description="""Count what a log of exchanges holds: tokens, cost, errors by kind, latency percentiles, finish reasons
            and broken tool calls. The input is a raw log, or a folder that crosswalk batch wrote.""",
        epilog="Exit status: 0 the report is written, and exchanges that cannot be read count as errors; 1 a file could "
        "not be read; 2 nothing could be tried.",
        examples=(
            "crosswalk report log.jsonl --by model,day",
            "crosswalk report log.jsonl --html > report.html",
            "crosswalk report --demo",
        ),
    )
    add_reading(parser)
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


def run(arguments: argparse.Namespace) -> int:
    """Report on the logs that *arguments* names.

    Raises:
        UsageError: the options contradict each other, or a file is missing.
        ConfigurationError: there are no price lists for ``--prices``.
        PluginError: the named provider cannot be used.
    """
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    if arguments.demo:
        if arguments.paths:
            raise UsageError("--demo reports on its own log: name none")
        arguments.paths = [str(SAMPLE_LOG)]
    arguments.keep = {name: parse_path(name) for name in arguments.by if name not in GROUPINGS}
    if arguments.prices:
        check_prices()
    counted_groups = Groups(arguments.by)
    status = _count(arguments, counted_groups)
    groups, total = counted_groups.sorted(), counted_groups.total
    absent = [
        name
        for place, name in enumerate(arguments.by)
        if groups and name in arguments.keep and all(group.values[place] == "-" for group in groups)
    ]
    for name in absent:
        say(f"--by: no line has {name!r}{meant(name, GROUPINGS)}")
    if arguments.html:
        write_text(report_page(arguments.by, groups, total, arguments.prices))
    elif arguments.csv:
        write_text(_csv(arguments.by, groups))
    else:
        _write(arguments.by, groups, total, arguments.prices)
    return status or (FAILED if total.unread or absent else OK)


def _count(arguments: argparse.Namespace, groups: Groups) -> int:
    """Add every exchange of the inputs to *groups*: of raw logs, and of folders of stored columns. The exit status."""
    column_folders = [
        path for path in arguments.paths if os.path.isdir(path) and keeper_of(Path(path)) is not None
    ]
    logs = [path for path in arguments.paths if path not in column_folders]
    spans = Spans()
    for path in column_folders:
        keeper = keeper_of(Path(path))
        assert keeper is not None
        for row in keeper.report_rows(Path(path)):
            groups.add_all(spans.take(row))
    if column_folders and arguments.prices:
        say("--prices adds no costs to stored columns; use it when you write them: crosswalk batch --prices")
    if column_folders and not logs:
        _add_rest(spans, groups)
        return OK
    records = records_of(arguments)
    sources, faults = find_sources(logs, records=records)
    for source in sources:
        source.records = source.records or (source.file is None and records is None)
    sources = _logs_of(sources)
    known_ids: set[str] = set()
    proposals = Proposals()
    repeated_count = 0
    with Progress("reading", total_size(sources)) as progress:
        tally = MappingTally(progress, "mapped")
        for fault in faults:
            tally.report(failed(fault))
        for item, results in worked(sources, arguments, partial(_counted, arguments)):
            for one in results:
                if isinstance(one, ReportRow):
                    if one.id in known_ids:  # a resumed session has copied it
                        repeated_count += 1
                        continue
                    if one.id is not None:
                        known_ids.add(one.id)
                    groups.add_all(spans.take(one))
                elif isinstance(one, Guess):
                    tally.note(one)
                elif isinstance(one, Proposal):
                    proposals.add(one)
                elif one.kind == LEFT_OUT:
                    tally.report(one)
                elif arguments.verbose:
                    progress.say(f"{one.place}: {one.cause}")
            tally.take(item.size)
    tally.write_total()
    if repeated_count:
        say(f"{counted(repeated_count, 'answer')} of resumed sessions in several files, counted once")
    _add_rest(spans, groups)
    for proposal in proposals.lines():
        say(proposal)
    if groups.total.exchanges and groups.total.errors[DetectionError.__name__] == groups.total.exchanges:
        say("no answer was recognized; if each line has it under a key, name that: --field response=KEY")
    return tally.status or (FAILED if tally.left_out and not groups.total.exchanges else OK)


def _add_rest(spans: Spans, groups: Groups) -> None:
    """Add the spans that were held back to *groups*, and say how many repeat others."""
    groups.add_all(spans.rest())
    if spans.repeated:
        say(f"{counted(spans.repeated, 'span')} with the same counts as the model calls inside, counted once")


def _logs_of(sources: list[InputSource]) -> list[InputSource]:
    """*sources* without the other files of a folder with logs, such as the outputs of tools beside session files."""
    folders = {source.root for source in sources if source.records}
    logs = [
        source for source in sources if source.records or source.root is None or source.root not in folders
    ]
    if passed_count := len(sources) - len(logs):
        say(f"passed over {counted(passed_count, 'file')} next to the logs")
    return logs


def _counted(
    arguments: argparse.Namespace, _: InputItem, answer: RecordedAnswer | InputFault
) -> Iterator[ReportRow | Failed | Guess | Proposal]:
    """The row of one answer. If it cannot be read, the row has the known facts and the error."""
    known_facts: dict[str, Any] = {}
    if isinstance(answer, InputFault) and not answer.is_exchange:
        yield failed(answer)
        return
    if isinstance(answer, InputFault):
        exchange = answer.exchange
        known_facts = {} if exchange is None else _known(exchange, None)
        yield attrs.evolve(_stated(exchange, known_facts), error="unreadable", is_unread=True)
        yield failed(answer)
        return
    record = answer.record
    known_facts = {"status": answer.status}
    try:
        response = response_of(answer, arguments)
        known_facts = _facts(record, response, known_facts)
        yield _priced(response, known_facts, arguments)
        yield from guesses(response)
    except CrosswalkError as error:
        partial_answer = error.partial if isinstance(error, MappingError) else None
        known_facts = {**_facts(record, partial_answer, known_facts), "error": type(error).__name__}
        proposal = proposal_of(record) if record is not None and record.layout is None else None
        if partial_answer is None:
            yield attrs.evolve(_stated(record, known_facts), is_unread=True)
        else:
            if record is not None:
                partial_answer = with_facts(partial_answer, record)
            # An answer inside the line tells that the line itself was mistaken for one.
            # So does a plain line that only begins like an answer: no log has half an answer in an object.
            is_begun = (
                isinstance(error, IncompleteStreamError) and record is not None and record.layout is None
            )
            is_unread = proposal is not None or is_begun
            yield attrs.evolve(_priced(partial_answer, known_facts, arguments), is_unread=is_unread)
        if proposal is not None:
            yield proposal
        yield failed(answer, error)


def _facts(
    record: Record | None, response: ChatResponse | None, file_facts: dict[str, Any]
) -> dict[str, Any]:
    """The facts of *record*, or those of a file that is the answer alone."""
    if record is None:
        vendor, source = vendor_of(None, response)
        return {**file_facts, "vendor": vendor, "vendor_source": source}
    known_facts = _known(record, response)
    if record.layout in _REPEATING_LAYOUTS:
        known_facts["id"] = record.id
    return known_facts


def _stated(exchange: LoggedExchange | None, known_facts: dict[str, Any]) -> ReportRow:
    """The row of an answer that cannot be read: what its log states."""
    return (
        ReportRow(**known_facts)
        if exchange is None
        else ReportRow(**known_facts, model=exchange.model, **_counts(exchange))
    )


def _counts(exchange: LoggedExchange) -> dict[str, Any]:
    return {
        name: exchange.tokens.get(name) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }


def _known(record: LoggedExchange, response: ChatResponse | None) -> dict[str, Any]:
    """The facts in the log about an exchange."""
    vendor, source = vendor_of(record, response)
    return {
        "time": record.created,
        "latency": None if record.latency is None else record.latency.total_seconds(),
        "vendor": vendor,
        "vendor_source": source,
        "logged_vendor": record.vendor,
        "provider": record.provider,
        "team": record.team,
        "span": None if record.id is None else (record.trace_id, record.id),
        "parent": None if record.parent is None else (record.trace_id, record.parent),
        "tier": record.tier,
        "kept": record.kept,
        "differs": response is not None and _differs(record, response),
        "status": record.status,
        "cost": record.cost,
        "is_estimated": record.cost_source == "estimated",
        "session": record.session,
        "user": record.user,
        "tags": record.tags,
        "has_answer": record.has_answer,
        "has_odd_time": record.has_odd_time,
    }


def _differs(record: LoggedExchange, response: ChatResponse) -> bool:
    """Whether *record* states other token counts than its answer."""
    provenance = response.metadata.provenance
    return any(
        provenance.get(f"usage.{name}") not in _NOT_SENT
        and count != getattr(response.usage, name)
        and not (provenance.get("usage") in _NOT_SENT and "usage" in provenance)
        for name, count in record.tokens.items()
        if name in ("prompt_tokens", "completion_tokens")
    )


_NOT_SENT: Final = (Provenance.ABSENT, Provenance.CUT, Provenance.DERIVED)


def _priced(response: ChatResponse, known_facts: dict[str, Any], arguments: argparse.Namespace) -> ReportRow:
    """The row of *response*, with the provider's cost or an estimate if the log has none."""
    known_facts = {**known_facts, "tier": known_facts.get("tier") or tier_of(response)}
    if known_facts.get("cost") is not None:
        return row_of(response, **known_facts)
    cost = response.usage.cost
    if cost is None and arguments.prices:
        cost = cost_of(response, vendor=known_facts.get("vendor"), tier=known_facts.get("tier"))
    if cost is None:
        return row_of(response, **known_facts)
    is_estimated = response.usage.cost is None
    return row_of(response, **{**known_facts, "cost": cost.amount, "is_estimated": is_estimated})


def _write(by: list[str], groups: list[Group], total: Group, with_prices: bool) -> None:
    rows = [_cells(group, len(by)) for group in groups]
    if len(groups) > 1:
        rows.append(_cells(total, len(by)))
    headings = [*by, *(_SHORT_HEADINGS if sys.stdout.isatty() else HEADINGS)]
    if sys.stdout.isatty() and shutil.get_terminal_size().columns < _MIN_WIDE_COLUMNS:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    write_table(headings, rows, numbers=range(len(by), len(headings)))
    for title, counts in (("Errors", total.errors), ("Finish reasons", total.finishes)):
        if counts:
            write_text(f"\n{title}: {', '.join(f'{count:,} {word}' for word, count in by_count(counts))}\n")
    if total.tool_calls:
        write_text(
            f"\nTool calls: {total.tool_calls:,}, {total.broken_calls:,} with arguments that are not a JSON object\n"
        )
    for note in notes_of(total, with_prices):
        write_text(f"\n{harmless(note)}\n")


def by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The words with their *counts*, the most frequent first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def notes_of(total: Group, with_prices: bool) -> Iterator[str]:
    """Notes that a reader needs to understand the sums.

    Args:
        total: all exchanges.
        with_prices: whether missing costs were estimated.
    """
    if unrecognized_count := total.errors[DetectionError.__name__]:
        yield (
            f"{unrecognized_count:,} of {total.exchanges:,} exchanges fit no provider, or several. --verbose lists them; "
            "name it with --provider NAME or --field provider=KEY."
        )
    if total.without_answer:
        yield (
            f"{total.without_answer:,} of {total.exchanges:,} exchanges have no stored answer; "
            "they count with what the log states."
        )
    if total.differing:
        yield (
            f"{total.differing:,} of {total.exchanges:,} exchanges state other token counts than their answer; "
            "the answer's count."
        )
    if total.odd_times:
        yield (
            f"{total.odd_times:,} of {total.exchanges:,} exchanges have a time in a form that is not read; they count "
            "without it. --field created=PATH@ms names another place or unit."
        )
    if total.vendors_by_model:
        yield f"{total.vendors_by_model:,} of {total.exchanges:,} vendors are derived from the model's name."
    without_usage_count = total.exchanges - total.with_usage
    if without_usage_count:
        yield f"{without_usage_count:,} of {total.exchanges:,} exchanges have no token counts."
    if total.exchanges and not total.with_cost and not with_prices:
        yield "No exchange states its cost; --prices estimates it by list prices."
    elif total.with_cost < total.exchanges:
        yield f"{total.exchanges - total.with_cost:,} of {total.exchanges:,} exchanges have no cost."
    if total.estimated:
        price_list_note = f" ({price_list()})" if with_prices else ""
        yield f"{total.estimated:,} of {total.with_cost:,} costs are estimated by list prices{price_list_note}."
    if with_prices and total.without_price:
        models = [model for model, _ in by_count(total.without_price)]
        more_text = (
            f" and {len(models) - _MAX_NAMED_MODELS:,} more" if len(models) > _MAX_NAMED_MODELS else ""
        )
        yield f"No list price for {counted(len(models), 'model')}: {', '.join(models[:_MAX_NAMED_MODELS])}{more_text}."


def _cells(group: Group, width: int) -> list[str]:
    values = [*group.values, *[""] * (width - len(group.values))]
    return [*values, *figures_of(group)]


def figures_of(group: Group) -> list[str]:
    """The figures of *group* as text, in the order of the table's headings."""
    cached_share = f"{100 * group.cached_tokens / group.prompt_tokens:.0f} %" if group.prompt_tokens else "-"
    cost = f"{group.cost:.4f}" if group.with_cost else "-"
    if 0 < group.cost < _MIN_SHOWN_COST:
        cost = f"<{_MIN_SHOWN_COST}"
    counts = (group.exchanges, group.errors.total(), group.prompt_tokens, group.completion_tokens)
    latencies = (group.latency(part) for part in (0.5, 0.95))
    return [
        *(f"{count:,}" for count in counts[:2]),
        f"{100 * counts[1] / counts[0]:.1f}" if counts[0] else "-",
        *(f"{count:,}" for count in counts[2:]),
        cached_share,
        cost,
        *("-" if seconds is None else f"{seconds:.2f}" for seconds in latencies),
    ]


def _csv(by: list[str], groups: list[Group]) -> str:
    finishes = sorted({word for group in groups for word in group.finishes})
    errors = sorted({word for group in groups for word in group.errors})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            *by, "exchanges", "errors", "prompt_tokens", "completion_tokens", "cached_tokens", "cost", "estimated_costs",
            "latency_p50", "latency_p95", "tool_calls", "broken_tool_calls",
            *(f"finish_{word}" for word in finishes), *(f"error_{word}" for word in errors),
        ]
    )  # fmt: skip
    for group in groups:
        cost = f"{group.cost:f}" if group.with_cost else ""
        writer.writerow(
            [
                *("" if value == "-" else value for value in group.values),
                group.exchanges, group.errors.total(), group.prompt_tokens, group.completion_tokens, group.cached_tokens,
                cost, group.estimated, group.latency(0.5), group.latency(0.95), group.tool_calls, group.broken_calls,
                *(group.finishes[word] for word in finishes), *(group.errors[word] for word in errors),
            ]
        )  # fmt: skip
    return out.getvalue()


# ----------------------------------------------------------------------------- report page
# The figures of ``crosswalk report`` as an HTML page that is complete in itself.


_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 80rem; }
table { border-collapse: collapse; width: 100%; margin: 0 0 2rem; }
th, td { text-align: right; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8884; }
td { font-variant-numeric: tabular-nums; }
th.k, td.k { text-align: left; }
tr.all { font-weight: 600; }
.bar { background: #3b7dd8; display: block; height: .5rem; border-radius: .25rem; }
div.scroll { overflow-x: auto; }
"""


def report_page(by: Sequence[str], groups: Sequence[Group], total: Group, with_prices: bool) -> str:
    """The page.

    Args:
        by: the names of the groupings.
        groups: the groups, in this order.
        total: all of them as one group.
        with_prices: whether missing costs were estimated.
    """
    heads = "".join(f'<th class="k">{_text(name)}</th>' for name in by)
    heads += "".join(f"<th>{name}</th>" for name in HEADINGS)
    rows = "\n".join(_row(group, group.values) for group in groups)
    total_row = _row(total, ("all", *[""] * (len(by) - 1)), "all")
    notes = "".join(f"<p>{_text(note)}</p>" for note in notes_of(total, with_prices))
    tool_calls_section = ""
    if total.tool_calls:
        broken_calls_text = f"{total.broken_calls:,} of them with arguments that are not a JSON object"
        tool_calls_section = f"<h2>Tool calls</h2><p>{total.tool_calls:,}, {broken_calls_text}.</p>"
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Report on {counted(total.exchanges, "exchange")}</title>
<style>{_STYLE}</style></head>
<body>
<h1>{counted(total.exchanges, "exchange")}</h1>
<div class="scroll"><table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
{total_row}
</tbody></table></div>
{_count_table("Errors", total.errors)}
{_count_table("Finish reasons", total.finishes)}
{tool_calls_section}
{notes}
</body>
</html>
"""


def _row(group: Group, values: Sequence[str], css_class: str = "") -> str:
    cells = "".join(f'<td class="k">{_text(value)}</td>' for value in values)
    cells += "".join(f"<td>{_text(figure)}</td>" for figure in figures_of(group))
    return f'<tr class="{css_class}">{cells}</tr>' if css_class else f"<tr>{cells}</tr>"


def _count_table(title: str, counts: dict[str, int]) -> str:
    if not counts:
        return ""
    max_count = max(counts.values())
    rows = "".join(
        f'<tr><td class="k">{_text(word)}</td><td>{count:,}</td>'
        f'<td style="width:60%"><span class="bar" style="width:{100 * count / max_count:.1f}%"></span></td></tr>'
        for word, count in by_count(counts)
    )
    return f"<h2>{title}</h2><table>{rows}</table>"


def _text(value: str) -> str:
    return html.escape(harmless(value))

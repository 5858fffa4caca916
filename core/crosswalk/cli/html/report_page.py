"""The figures of ``crosswalk report`` as an HTML page that is complete in itself."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

from crosswalk.cli.logs.report_rows import Group
from crosswalk.cli.report import HEADINGS, by_count, figures_of, notes_of
from crosswalk.cli.terminal import harmless
from crosswalk.text import counted

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
    last = _row(total, ("all", *[""] * (len(by) - 1)), "all")
    notes = "".join(f"<p>{_text(note)}</p>" for note in notes_of(total, with_prices))
    calls = ""
    if total.tool_calls:
        broken = f"{total.broken_calls:,} of them with arguments that are not a JSON object"
        calls = f"<h2>Tool calls</h2><p>{total.tool_calls:,}, {broken}.</p>"
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
{last}
</tbody></table></div>
{_counts("Errors", total.errors)}
{_counts("Finish reasons", total.finishes)}
{calls}
{notes}
</body>
</html>
"""


def _row(group: Group, values: Sequence[str], kind: str = "") -> str:
    cells = "".join(f'<td class="k">{_text(value)}</td>' for value in values)
    cells += "".join(f"<td>{_text(figure)}</td>" for figure in figures_of(group))
    return f'<tr class="{kind}">{cells}</tr>' if kind else f"<tr>{cells}</tr>"


def _counts(title: str, counts: dict[str, int]) -> str:
    if not counts:
        return ""
    most = max(counts.values())
    rows = "".join(
        f'<tr><td class="k">{_text(word)}</td><td>{count:,}</td>'
        f'<td style="width:60%"><span class="bar" style="width:{100 * count / most:.1f}%"></span></td></tr>'
        for word, count in by_count(counts)
    )
    return f"<h2>{title}</h2><table>{rows}</table>"


def _text(value: str) -> str:
    return html.escape(harmless(value))

"""The findings of ``crosswalk diff`` as an HTML page that is complete in itself."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from crosswalk.cli.terminal import UsageError, harmless
from crosswalk.drafts import written
from crosswalk.testing.changes import Kind

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 80rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8884; }
th { position: sticky; top: 0; background: Canvas; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
del { color: #b3261e; text-decoration: none; } ins { color: #1b7f3b; text-decoration: none; }
tr.accepted { opacity: .55; }
small { display: block; }
@media (prefers-color-scheme: dark) { del { color: #ff8a80; } ins { color: #7fdc9b; } }
@media (max-width: 40rem) { thead { display: none; } td { display: block; border: 0; } }
"""


def write_page(path: str, counts: Mapping[str, int], kinds: Sequence[Kind]) -> None:
    """Write the page to the file *path*, replacing an earlier one.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        with written(Path(path), replace=True) as out:
            out.write(diff_page(counts, kinds).encode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None


def diff_page(counts: Mapping[str, int], kinds: Sequence[Kind]) -> str:
    """The page.

    Args:
        counts: the number of answers compared, and of each result by its name.
        kinds: every kind of change, in the order in which they are shown.
    """
    raw = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items())
    heads = "".join(f"<th>{head}</th>" for head in ("answers", "provider", "field", "change", "for example"))
    rows = "\n".join(map(_row, kinds)) or '<tr><td colspan="5">Nothing differs.</td></tr>'
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What changed</title>
<style>{_STYLE}</style></head>
<body>
<h1>What changed</h1>
<p>Answers: {_text(raw)}.</p>
<table><thead><tr>{heads}</tr></thead><tbody>
{rows}
</tbody></table>
</body>
</html>
"""


def _row(kind: Kind) -> str:
    another = "another " if kind.before == kind.after else ""
    change = f"<del>{_text(kind.before)}</del> → <ins>{_text(another + kind.after)}</ins>"
    accepted = "<small>accepted</small>" if kind.is_accepted else ""
    examples = "".join(f"<small><code>{_text(example)}</code></small>" for example in kind.examples)
    return (
        f'<tr class="{"accepted" if kind.is_accepted else "new"}"><td class="n">{kind.captures}</td>'
        f"<td>{_text(kind.provider)}</td><td><code>{_text(kind.path)}</code></td>"
        f"<td>{change}{accepted}</td><td>{examples}</td></tr>"
    )


def _text(text: str) -> str:
    return html.escape(harmless(text))

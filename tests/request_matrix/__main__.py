"""Shows what became of the rows: ``PYTHONPATH=tests python -m request_matrix [VERDICT [FORMAT [TARGET]]]``.

Without arguments it counts the verdicts. With one, as ``vanished``, it lists the rows of it, each with its targets and with what
shows it. ``--lower`` lowers the limits in ``allowed.json`` to what is wrong now. ``--anew`` writes them anew, for new rows.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict

from .bodies import MARKER
from .judge import FORMATS, OWN, TARGETS, Verdict, counted, judged, rows
from .limits import ALLOWED, failures, limits_of, lower


def main() -> int:
    """Count the verdicts, list the rows of one, or write the limits."""
    wanted = [one for one in sys.argv[1:] if not one.startswith("--")]
    found = judged(rows())
    if "--lower" in sys.argv[1:] or "--anew" in sys.argv[1:]:
        limits = limits_of(found)
        if "--lower" in sys.argv[1:]:
            limits = lower(json.loads(ALLOWED.read_text(encoding="utf-8")), limits)
        ALLOWED.write_text(json.dumps(limits, indent=1) + "\n", encoding="utf-8")
        return 0
    if wanted:
        verdict, format, target = [*wanted, "", ""][:3]
        groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for one in found:
            if one.verdict == verdict and format in ("", one.row.format) and target in ("", one.target):
                groups[one.row.format, one.row.name, MARKER.sub("…", one.note)].append(one.target)
        for (form, name, note), targets in groups.items():
            print(f"{form} {name}: {', '.join(targets)}\n    {note}")
        return 0
    for format in FORMATS:
        counts = counted(one for one in found if one.row.format == format)
        shown = ", ".join(f"{name} {counts[name]}" for name in Verdict if counts[name])
        print(f"{format}: {shown}")
    counts = counted(found)
    other = sum(OWN[one.row.format] != one.target for one in found)
    print(
        f"all {other} cells to {len(TARGETS)} servers: "
        + ", ".join(f"{name} {n}" for name, n in counts.items())
    )
    for line in failures(found, "all"):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

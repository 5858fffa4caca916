"""Read a folder of logged answers, of any framing, add up tokens, and list the failures.

    python examples/audit_folder.py tests/captures/ollama ollama

Without a provider, it detects that of each file. The HTTP status of a file is read from
``MANIFEST.jsonl`` in the folder if there is one.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import attrs

from crosswalk import ChatResponse, CrosswalkError, FinishReason, MappingError, UsageInfo, normalize


@attrs.define
class Audit:
    """The results of the audit."""

    usage: UsageInfo = UsageInfo.EMPTY
    uncounted: int = 0
    ends: Counter[str] = attrs.Factory(Counter)
    failures: list[str] = attrs.Factory(list)

    def add(self, name: str, response: ChatResponse) -> None:
        """Count *response*, whole or partial."""
        self.usage += response.usage
        self.uncounted += response.metadata.provenance.get("usage") == "absent"
        self.ends[response.finish_reason] += 1
        if response.finish_reason is FinishReason.ERROR:
            info = response.error_info
            self.failures.append(f"{name}: {info.kind}: {info.message}")


def audit(folder: Path, provider: str | None) -> Audit:
    """Read every answer in *folder*."""
    found = Audit()
    statuses = read_statuses(folder)
    for file in sorted(folder.iterdir()):
        if file.suffix not in {".json", ".ndjson", ".sse", ".txt"}:
            continue
        status = statuses.get(file.name, 200)
        try:
            # An audit stores unknown values and does not stop at them.
            response = normalize(file.read_bytes(), provider, status=status, unknown="keep", keep_raw=False)
        except MappingError as error:
            if error.partial is None:
                found.failures.append(f"{file.name}: {error}")
            else:
                found.add(file.name, error.partial)
        except CrosswalkError as error:
            found.failures.append(f"{file.name}: {error}")
        else:
            found.add(file.name, response)
    return found


def read_statuses(folder: Path) -> dict[str, int]:
    """Return the HTTP status of each file in the manifest."""
    manifest = folder / "MANIFEST.jsonl"
    lines = manifest.read_text().splitlines() if manifest.exists() else []
    entries = [json.loads(line) for line in lines]
    return {entry["file"]: entry.get("status") or 200 for entry in entries}


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = audit(Path(arguments[0]), arguments[1] if len(arguments) == 2 else None)
    print(f"{found.ends.total()} answers: {', '.join(f'{n} {end}' for end, n in found.ends.most_common())}")
    print(f"{found.usage}; {found.uncounted} answers were not counted by their server")
    for failure in found.failures:
        print(f"  {failure}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

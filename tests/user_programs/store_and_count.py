"""Store answers as canonical JSON, read them back, and count what they used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import attrs

from crosswalk import ChatResponse, UsageInfo, cost_of, from_json, to_json, to_jsonable
from crosswalk.codec import converter, differences


@attrs.frozen
class Saved:
    note: str
    response: ChatResponse


def stored(folder: Path, answers: dict[str, ChatResponse]) -> None:
    for name, answer in answers.items():
        (folder / f"{name}.json").write_bytes(to_json(answer))


def counted(folder: Path) -> tuple[UsageInfo, Counter[str]]:
    usage, ends = UsageInfo(0, 0), Counter[str]()
    for file in sorted(folder.glob("*.json")):
        answer = from_json(file.read_bytes(), ChatResponse)
        usage += answer.usage
        ends[answer.finish_reason] += 1
        details = answer.usage.details
        print(details.audio_input_tokens, cost_of(answer))
        for difference in differences(answer, answer):
            print(difference.path, difference.before, difference.after)
        saved = Saved("first", answer)
        print(converter().unstructure(saved)["note"], to_jsonable(answer)["id"])
    return usage, ends

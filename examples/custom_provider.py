"""A provider in one file: registered in the program, used as if it were installed.

    python examples/custom_provider.py

``docs/plugins.md`` makes a package of such a plugin and tests it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crosswalk import (
    TAKEN,
    FinishReason,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    get_count,
    get_string,
    hookimpl,
    normalize,
    registry,
    residue,
    to_json,
)
from crosswalk.plugins import MappingState, event_type

STREAM = b"""\
event: say
data: {"type": "say", "text": "Polly wants "}

event: say
data: {"type": "say", "text": "a cracker."}

event: bye
data: {"type": "bye", "why": "tired", "heard": 4, "said": 6, "perch": "left"}

"""


class Parrot:
    """The hooks for the Parrot API."""

    consumed = {"type": TAKEN, "text": TAKEN, "why": TAKEN, "heard": TAKEN, "said": TAKEN}
    finish_reasons = {"tired": FinishReason.STOP, "interrupted": FinishReason.LENGTH}

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Text, or the end."""
        match get_string(event, "type"):
            case "say":
                text = get_string(event, "text") or ""
                return [ResponseDelta(content_delta=text)]
            case "bye":
                why = get_string(event, "why") or ""
                return [ResponseDelta(raw_finish_reason=why)]
        raise UnknownEventError("neither say nor bye", event_type=event_type(event))

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        """Why it stopped."""
        try:
            return self.finish_reasons[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts of the last event."""
        heard, said = get_count(event, "heard"), get_count(event, "said")
        if heard is None and said is None:
            return None
        state.note("usage.prompt_tokens", "absent" if heard is None else None)
        state.note("usage.completion_tokens", "absent" if said is None else None)
        return UsageInfo(heard or 0, said or 0)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Everything else."""
        return residue(event, self.consumed, state)


def main() -> None:
    """Read the stream above and print it."""
    registry.register(Parrot(), "parrot")
    print(to_json(normalize(STREAM, "parrot"), indent=True).decode())


if __name__ == "__main__":
    main()

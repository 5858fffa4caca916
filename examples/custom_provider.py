"""Register a provider from one file in the program, and use it as if it were installed.

    python examples/custom_provider.py

``docs/plugins.md`` turns such a plugin into a package and tests it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import normalize, registry, to_json
from crosswalk.plugins import (
    FinishReason,
    MappingState,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    accept_count,
    hookimpl,
    require_object,
    take_string,
)

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

    finish_reasons = {"tired": FinishReason.STOP, "interrupted": FinishReason.LENGTH}

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Map text, or the end. All other fields stay in the extensions."""
        event = require_object(event)
        match take_string(event, "type"):
            case "say":
                if text := take_string(event, "text"):
                    yield ResponseDelta(content_delta=text)
            case "bye":
                yield ResponseDelta(raw_finish_reason=take_string(event, "why") or "")
            case other:
                raise UnknownEventError("neither say nor bye", event_type=other)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        """Map the reason why the answer ended."""
        if reason not in self.finish_reasons:
            raise UnknownFinishReasonError(reason)
        return self.finish_reasons[reason]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Return the counts of the last event."""
        return state.usage_info(accept_count(event, "heard"), accept_count(event, "said"))


def main() -> None:
    """Read the stream above and print it."""
    registry.register(Parrot(), "parrot")
    print(to_json(normalize(STREAM, "parrot"), indent=True).decode())


if __name__ == "__main__":
    main()

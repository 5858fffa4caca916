"""What a guardrail found, in the prompt and in the answer (section 8).

The trace stays in the extensions, where all of it is; what a guardrail found is shown in segments as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import (
    SafetyAnnotation,
    Segment,
    SegmentType,
    get_array,
    get_object,
    get_string,
    require_object,
)

__all__ = ["guardrail_segments"]

_FINDINGS = (
    # the policy, its list, what names the harm, how bad it is
    ("topicPolicy", "topics", "name", None),
    ("contentPolicy", "filters", "type", "confidence"),
    ("wordPolicy", "customWords", None, None),
    ("wordPolicy", "managedWordLists", "type", None),
    ("sensitiveInformationPolicy", "piiEntities", "type", None),
    ("sensitiveInformationPolicy", "regexes", "name", None),
    ("contextualGroundingPolicy", "filters", "type", None),
)
_HARMLESS = (None, "NONE")


def guardrail_segments(trace: dict[str, Any], place: str) -> Iterator[Segment]:
    """The segments for what the guardrail of *trace* acted on: one for the prompt, one for the answer.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    guardrail = get_object(trace, "guardrail", place) or {}
    place = f"{place}.guardrail"
    for name, of in (("inputAssessment", "prompt"), ("outputAssessments", "answer")):
        found: list[SafetyAnnotation] = []
        for id, value in (get_object(guardrail, name, place) or {}).items():
            spot = f"{place}.{name}.{id[:60]}"
            for item in value if type(value) is list else [value]:
                found += _findings(require_object(item, spot), spot)
        if found:
            yield Segment(SegmentType.SAFETY, "", {"of": of}, tuple(found))


def _findings(assessment: dict[str, Any], place: str) -> Iterator[SafetyAnnotation]:
    for policy, items, naming, level in _FINDINGS:
        where = f"{place}.{policy}"
        found = get_array(get_object(assessment, policy, place) or {}, items, where)
        for number, item in enumerate(found):
            spot = f"{where}.{items}[{number}]"
            finding = require_object(item, spot)
            action = get_string(finding, "action", spot)
            if action not in _HARMLESS:
                category = get_string(finding, naming, spot) if naming else None
                said = get_string(finding, level, spot) if level else None
                yield SafetyAnnotation(category or items, said, blocked=action == "BLOCKED")

"""What a guardrail found, in the prompt and in the answer (section 8).

The trace stays in the extensions, where all of it is; what a guardrail found is shown in segments as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.plugins import SafetyAnnotation, Segment, SegmentType, accept_objects, look_at

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


def guardrail_segments(trace: dict[str, Any]) -> Iterator[Segment]:
    """The segments for what the guardrail of *trace* acted on: one for the prompt, one for the answer."""
    guardrail = look_at(trace, "guardrail", dict) or {}
    for name, of in (("inputAssessment", "prompt"), ("outputAssessments", "answer")):
        assessments = look_at(guardrail, name, dict) or {}
        found = [
            finding
            for id in [*assessments]
            for assessment in _objects(assessments, id)
            for finding in _findings(assessment)
        ]
        if found:
            yield Segment(SegmentType.SAFETY, "", {"of": of}, tuple(found))


def _findings(assessment: dict[str, Any]) -> Iterator[SafetyAnnotation]:
    for policy, items, naming, level in _FINDINGS:
        for finding in _objects(look_at(assessment, policy, dict) or {}, items):
            action = look_at(finding, "action", str)
            if action not in _HARMLESS:
                category = look_at(finding, naming, str) if naming else None
                said = look_at(finding, level, str) if level else None
                yield SafetyAnnotation(category or items, said, blocked=action == "BLOCKED")


def _objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The object under *key*, or those of an array; they stay, as does an empty array."""
    value = container.get(key)
    if type(value) is list:
        return accept_objects(container, key) if value else []
    found = look_at(container, key, dict)
    return [found] if found else []

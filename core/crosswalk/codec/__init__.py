"""Canonical JSON, both ways: how answers are stored, compared and sent on (design, section 4)."""

from crosswalk.codec.compare import ABSENT, Absent, Difference, differences
from crosswalk.codec.converters import configure_converter
from crosswalk.codec.otel import otel_attributes
from crosswalk.codec.reading import from_json
from crosswalk.codec.schema import json_schema
from crosswalk.codec.version import FORMAT_VERSION
from crosswalk.codec.writing import to_json, to_jsonable

__all__ = [
    "ABSENT",
    "FORMAT_VERSION",
    "Absent",
    "Difference",
    "configure_converter",
    "differences",
    "from_json",
    "json_schema",
    "otel_attributes",
    "to_json",
    "to_jsonable",
]

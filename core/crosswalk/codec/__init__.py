"""Canonical JSON, both ways: how answers are stored, compared and sent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.codec.canonical import (
        ABSENT as ABSENT,
        Absent as Absent,
        Difference as Difference,
        differences as differences,
        to_json as to_json,
        to_jsonable as to_jsonable,
    )
    from crosswalk.codec.converters import (
        CanonicalConverter as CanonicalConverter,
        configure_converter as configure_converter,
        converter as converter,
        from_json as from_json,
        transform_error as transform_error,
    )
    from crosswalk.codec.layout import (
        FORMAT_VERSION as FORMAT_VERSION,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.codec.canonical": "ABSENT Absent Difference differences to_json to_jsonable",
            "crosswalk.codec.converters": (
                "CanonicalConverter configure_converter converter from_json transform_error"
            ),
            "crosswalk.codec.layout": "FORMAT_VERSION",
        },
    )

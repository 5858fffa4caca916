"""Canonical JSON, both ways: how answers are stored, compared and sent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.codec.compare import (
        ABSENT as ABSENT,
        Absent as Absent,
        Difference as Difference,
        differences as differences,
    )
    from crosswalk.codec.converters import (
        CanonicalConverter as CanonicalConverter,
        configure_converter as configure_converter,
        converter as converter,
        from_json as from_json,
        transform_error as transform_error,
    )
    from crosswalk.codec.version import (
        FORMAT_VERSION as FORMAT_VERSION,
    )
    from crosswalk.codec.writing import (
        to_json as to_json,
        to_jsonable as to_jsonable,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.codec.compare": "ABSENT Absent Difference differences",
            "crosswalk.codec.converters": (
                "CanonicalConverter configure_converter converter from_json transform_error"
            ),
            "crosswalk.codec.version": "FORMAT_VERSION",
            "crosswalk.codec.writing": "to_json to_jsonable",
        },
    )

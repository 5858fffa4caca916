"""Canonical JSON, both ways: how answers are stored, compared and sent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.codec.canonical import (
        ABSENT as ABSENT,
        Absent as Absent,
        CanonicalConverter as CanonicalConverter,
        Difference as Difference,
        configure_converter as configure_converter,
        converter as converter,
        differences as differences,
        from_json as from_json,
        to_json as to_json,
        to_jsonable as to_jsonable,
        transform_error as transform_error,
    )
    from crosswalk.codec.layout import (
        FORMAT_VERSION as FORMAT_VERSION,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.codec.canonical": (
                "ABSENT Absent CanonicalConverter Difference configure_converter converter differences from_json "
                "to_json to_jsonable transform_error"
            ),
            "crosswalk.codec.layout": "FORMAT_VERSION",
        },
    )

"""Logs of exchanges in JSON Lines: recorded answers, plain bodies, and the files and exports of other tools.

A line is an exchange: an answer and what the log says about it, such as the time, the requested model, the vendor and the
HTTP status. A :class:`Layout` locates these facts, and ``layouts/`` has one for each known log. A line that fits none of
them is read as the answer itself, a plain body. Lines that cannot be read become a :class:`BadRecord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.records.facts import (
        VENDORS as VENDORS,
        Exchange as Exchange,
        RecordError as RecordError,
        facts_of as facts_of,
        stated_response as stated_response,
        with_facts as with_facts,
    )
    from crosswalk.records.layout import (
        FIELDS as FIELDS,
        Layout as Layout,
        layout_of as layout_of,
        layout_of_lines as layout_of_lines,
        layouts as layouts,
        load_layout as load_layout,
        with_fields as with_fields,
    )
    from crosswalk.records.paths import (
        Path as Path,
        look_up as look_up,
        parse_path as parse_path,
    )
    from crosswalk.records.reading import (
        BadRecord as BadRecord,
        Line as Line,
        Record as Record,
        read_entry as read_entry,
        read_record as read_record,
        read_records as read_records,
        record_lines as record_lines,
    )
    from crosswalk.records.sessions import (
        exchange_lines as exchange_lines,
        is_session as is_session,
    )
    from crosswalk.records.writing import (
        append_line as append_line,
        record_line as record_line,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.records.facts": ("Exchange RecordError VENDORS facts_of stated_response with_facts"),
            "crosswalk.records.layout": (
                "FIELDS Layout layout_of layout_of_lines layouts load_layout with_fields"
            ),
            "crosswalk.records.paths": "Path look_up parse_path",
            "crosswalk.records.reading": (
                "BadRecord Line Record read_entry read_record read_records record_lines"
            ),
            "crosswalk.records.sessions": "exchange_lines is_session",
            "crosswalk.records.writing": "append_line record_line",
        },
    )

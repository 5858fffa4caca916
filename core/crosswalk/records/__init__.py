"""Logs of exchanges in JSON Lines: recorded answers, plain bodies, and the files and exports of other tools.

A line is an exchange: an answer and what the log says about it, such as the time, the requested model, the vendor and the
HTTP status. A :class:`Layout` locates these facts, and ``layouts/`` has one for each known log. A line that fits none of
them is read as the answer itself, a plain body. Lines that cannot be read become a :class:`BadRecord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.records.answers import has_content as has_content
    from crosswalk.records.facts import (
        VENDORS as VENDORS,
        LoggedExchange as LoggedExchange,
        NotAnExchangeError as NotAnExchangeError,
        RecordError as RecordError,
        stated_response as stated_response,
        vendor_name as vendor_name,
        vendor_of_model as vendor_of_model,
        with_facts as with_facts,
    )
    from crosswalk.records.files import (
        HEAD as HEAD,
        PACKED as PACKED,
        LogFileError as LogFileError,
        Unpacked as Unpacked,
        file_kind as file_kind,
        log_kind as log_kind,
    )
    from crosswalk.records.layout import (
        FIELDS as FIELDS,
        Layout as Layout,
        Path as Path,
        decoded as decoded,
        entries_of as entries_of,
        layout_of as layout_of,
        layout_of_lines as layout_of_lines,
        layouts as layouts,
        load_layout as load_layout,
        look_up as look_up,
        parse_path as parse_path,
        with_fields as with_fields,
    )
    from crosswalk.records.reading import (
        BadRecord as BadRecord,
        Line as Line,
        Record as Record,
        append_line as append_line,
        exchange_lines as exchange_lines,
        is_session as is_session,
        read_entry as read_entry,
        read_record as read_record,
        read_records as read_records,
        record_line as record_line,
        record_lines as record_lines,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.records.answers": "has_content",
            "crosswalk.records.facts": (
                "LoggedExchange NotAnExchangeError RecordError VENDORS stated_response vendor_name "
                "vendor_of_model with_facts"
            ),
            "crosswalk.records.files": "HEAD PACKED LogFileError Unpacked file_kind log_kind",
            "crosswalk.records.layout": (
                "FIELDS Layout Path decoded entries_of layout_of layout_of_lines layouts load_layout look_up parse_path "
                "with_fields"
            ),
            "crosswalk.records.reading": (
                "BadRecord Line Record append_line exchange_lines is_session read_entry read_record "
                "read_records record_line record_lines"
            ),
        },
    )

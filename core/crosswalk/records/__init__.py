"""Logs of exchanges, a line of JSON each: recorded answers, plain bodies, the files and exports of other tools.

A line is an exchange: an answer and what the log says beside it, such as the time, the model that was asked for, the vendor
and the HTTP status. A :class:`Layout` says where they stand; ``layouts/`` has one for each log that Crosswalk knows. A line
of none of these is itself the answer, a plain body. So is nothing else: what does not fit is a :class:`BadRecord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.records.facts import *
    from crosswalk.records.layout import *
    from crosswalk.records.paths import *
    from crosswalk.records.reading import *
    from crosswalk.records.writing import *
else:
    __getattr__, __dir__ = lazy(__name__, "facts layout paths reading writing")

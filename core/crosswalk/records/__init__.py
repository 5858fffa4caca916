"""Logs of exchanges in JSON Lines: recorded answers, plain bodies, and the files and exports of other tools.

A line is an exchange: an answer and what the log says about it, such as the time, the requested model, the vendor and the
HTTP status. A :class:`Layout` locates these facts, and ``layouts/`` has one for each known log. A line that fits none of
them is read as the answer itself, a plain body. Lines that cannot be read become a :class:`BadRecord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.records.facts import *
    from crosswalk.records.layout import *
    from crosswalk.records.paths import *
    from crosswalk.records.reading import *
    from crosswalk.records.sessions import *
    from crosswalk.records.writing import *
else:
    __getattr__, __dir__ = lazy(__name__, "facts layout paths reading sessions writing")

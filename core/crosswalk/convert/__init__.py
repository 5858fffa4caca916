"""Conversion of answers: canonical to any wire form, and canonical to typed Responses values and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.convert.conversion import *
    from crosswalk.convert.errors import *
    from crosswalk.convert.folding import *
    from crosswalk.convert.form import *
    from crosswalk.convert.report import *
    from crosswalk.convert.streams import *
    from crosswalk.convert.typed import *
else:
    __getattr__, __dir__ = lazy(__name__, "conversion errors folding form report streams typed")

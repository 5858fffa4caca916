"""Conversion of answers: canonical to any wire form, and canonical to typed Responses values and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.convert.conversion import *
    from crosswalk.responses.convert.errors import *
    from crosswalk.responses.convert.folding import *
    from crosswalk.responses.convert.form import *
    from crosswalk.responses.convert.report import *
    from crosswalk.responses.convert.typed import *
else:
    __getattr__, __dir__ = lazy(__name__, "conversion errors folding form report typed")

"""Tools: every call of one behind one interface, and the steps of its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.toolkit.call import *
    from crosswalk.responses.toolkit.functions import *
    from crosswalk.responses.toolkit.registry import *
    from crosswalk.responses.toolkit.searches import *
else:
    __getattr__, __dir__ = lazy(__name__, "call functions registry searches")

"""Whether anything is learnt from answers that were read, for those that are like them: see :mod:`crosswalk.shapes`.

What is learnt never changes what is read; who wants to do without sets ``learning.is_on = False``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

__all__ = ["Learning", "OddError", "learning"]


class Learning:
    """Whether this process learns.

    Attributes:
        is_on: whether anything is learnt, and what was learnt is used: of bodies, streams and canonical documents. A stream
            asks when it begins.
    """

    is_on = True


learning: Final = Learning()
"""The one of this process."""


class OddError(Exception):
    """An id or a time was made for a body that only the general way can judge.

    Attributes:
        id_factory: makes the id that was made, and then others.
        clock: tells the time that was told, and then others.
    """

    def __init__(self, id_factory: Callable[[], str], clock: Callable[[], datetime]) -> None:
        self.id_factory = id_factory
        self.clock = clock

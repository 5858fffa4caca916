"""What is learnt from answers that were read, for those that are like them: as much as pays.

To learn is work that the next answers have to bring in again; in a log in which no two are alike they never do. So a
:class:`Budget` says when something may be learnt, and :class:`Shapes` forgets what is of no use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

from crosswalk.learning import OddError, learning
from crosswalk.types.response import ChatResponse

__all__ = ["Budget", "Shape", "Shapes"]


class Budget:
    """How often something may be learnt, so that it never takes longer than it saves by much.

    All is counted in what it takes to read one in the general way: learning may take a sixteenth of all that is read so, and
    half of what it saves; and at first some, which nothing has paid for yet.

    Args:
        first: how much may be spent at first.
    """

    __slots__ = ("_credit", "_most")

    def __init__(self, first: int) -> None:
        self._credit: float = first
        self._most = 4 * first  # what was saved long ago says little of what comes

    def earn(self, others: int, alike: int = 0) -> None:
        """Say how many were read in the general way, and how many by what was learnt."""
        self._credit = min(self._most, self._credit + others / 16 + alike / 2)

    def allows(self, cost: int) -> bool:
        """Whether what takes *cost* may be learnt."""
        return self._credit >= cost

    def take(self, cost: int) -> bool:
        """Whether what takes *cost* may be learnt, which then is paid for."""
        is_allowed = self.allows(cost)
        if is_allowed:
            self._credit -= cost
        return is_allowed


class Shape:
    """What reads answers of one kind.

    Attributes:
        read: the response of one; ``None`` or an exception for another kind, and for what only the general way can judge.
        kind: of two of the same kind the latter replaces the other; by default there is no other.
        hits: how many it has read lately.
    """

    __slots__ = ("hits", "kind", "read")

    def __init__(self, read: Callable[..., ChatResponse | None], kind: object = None) -> None:
        self.read = read
        self.kind = object() if kind is None else kind
        self.hits = 1


S = TypeVar("S", bound=Shape)

_MOST_SEEN: Final = 256


class Shapes(Generic[S]):
    """The shapes that were learnt from the answers of one provider, or from documents, the one that fitted last first.

    Args:
        cost: what it takes to learn one, in what it takes to read one in the general way.
        first: how many may be learnt at first.
        most: how many are kept.
        patience: after so many answers that none has fitted, those that have not fitted since as many before are forgotten:
            trying each takes its time.
    """

    __slots__ = ("_budget", "_cost", "_first", "_known", "_misses", "_most", "_patience", "_seen")

    def __init__(self, *, cost: int, first: int, most: int, patience: int) -> None:
        self._cost = cost
        self._first = first
        self._most = most
        self._patience = patience
        self.forget()

    def forget(self) -> None:
        """Know nothing any more, as at first."""
        self._budget = Budget(self._first * self._cost)
        # Replaced and never changed: other threads may be reading with it.
        self._known: tuple[S, ...] = ()
        self._seen: dict[Hashable, int] = {}
        self._misses = 0

    def read(self, *given: Any) -> ChatResponse | None:
        """The response that a shape makes of what is *given*; ``None`` where none fits."""
        known = self._known if learning.is_on else ()
        for shape in known:
            try:
                response = shape.read(*given)
            except OddError:
                raise
            except (
                Exception
            ):  # it is damaged, or another, or has no such text, time, id: the general way knows
                continue
            if response is not None:
                shape.hits += 1
                if shape is not known[0]:
                    self._known = (shape, *(other for other in known if other is not shape))
                return response
        return None

    def note(self, response: ChatResponse, learn: Callable[[Sequence[S]], S | None]) -> None:
        """Let *learn* make a shape of what no shape has fitted and is *response*, once its like comes again.

        Args:
            response: what the general way has made of it.
            learn: makes a shape of it, knowing those that have not fitted; ``None`` where it cannot.
        """
        if not learning.is_on:
            return
        self._budget.earn(1)
        self._misses += 1
        if self._misses == self._patience:
            self._forget_idle()
        metadata = response.metadata
        like = (
            metadata.provider_id,
            response.raw_finish_reason,
            *(segment.type for segment in response.segments),
            *metadata.extensions,
            *metadata.provenance.items(),
        )
        seen = self._seen.get(like, 0) + 1
        if len(self._seen) >= _MOST_SEEN:
            self._seen = {}
        self._seen[like] = seen
        # The second time, and ever more seldom where it is no use.
        if seen > 1 and not seen & (seen - 1) and self._budget.take(self._cost):
            shape = learn(self._known)
            if shape is not None:
                others = [other for other in self._known if other.kind != shape.kind]
                self._known = (shape, *others[: self._most - 1])

    def _forget_idle(self) -> None:
        self._budget.earn(0, sum(shape.hits for shape in self._known))
        self._known = tuple(shape for shape in self._known if shape.hits)
        self._misses = 0
        for shape in self._known:
            shape.hits = 0

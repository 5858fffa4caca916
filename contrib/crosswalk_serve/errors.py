"""What can be wrong with what a client asks."""

from __future__ import annotations

from crosswalk.errors import CrosswalkError

__all__ = ["BadRequestError"]


class BadRequestError(CrosswalkError, ValueError):
    """A client's request is not what its form allows. The message names the place and quotes no content.

    Attributes:
        path: where it stands, such as ``messages[0].content[1].type``; ``""`` for the body as a whole.
        problem: what is wrong there.
        status: the HTTP status to answer with.
    """

    def __init__(self, problem: str, path: str = "", *, status: int = 400) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.status = status

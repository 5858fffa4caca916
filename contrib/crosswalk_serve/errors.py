"""The error about a client's request."""

from __future__ import annotations

from crosswalk.errors import CrosswalkError

__all__ = ["BadRequestError"]


class BadRequestError(CrosswalkError, ValueError):
    """A client's request does not conform to its form. The message names the place and quotes no content.

    Attributes:
        path: the place, such as ``messages[0].content[1].type``, or ``""`` for the body as a whole.
        problem: the problem.
        status: the HTTP status of the response.
    """

    def __init__(self, problem: str, path: str = "", *, status: int = 400) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.status = status

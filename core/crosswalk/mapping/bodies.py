"""Whole bodies: what has been learnt of a provider's, and the general way to read one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from crosswalk.mapping.learnt.shape import Shape, Shapes, learn
from crosswalk.mapping.log import quietly
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.mapper import Mapper
from crosswalk.types.response import ChatResponse

__all__ = ["learn_body", "read_body", "shape_of", "shapes_of"]


def shapes_of(mapper: Mapper) -> Shapes:
    """What is known of the bodies of this provider; nothing, ever, where its promises do not hold."""
    found: Shapes | None = mapper.memory.get(Shapes)
    if found is None:
        found = mapper.memory.setdefault(Shapes, Shapes(mapper.info.body_leaves if mapper.is_plain else ()))
    return found


def read_body(mapper: Mapper, data: bytes, options: ReaderOptions) -> ChatResponse:
    """The response that *data* is, in the general way.

    Raises:
        MappingError: it cannot be mapped.
    """
    reader = Reader(mapper, options, shows=False)
    drain(reader.read_whole(data))
    drain(reader.finish())
    return reader.response()


def learn_body(mapper: Mapper, data: bytes, response: ChatResponse) -> None:
    """Learn from the body *data*, which no shape has fitted and which is *response*."""
    with quietly():
        shapes_of(mapper).note(data, response, partial(_probe, mapper))


def shape_of(mapper: Mapper, data: bytes) -> Shape | None:
    """What reads bodies like *data*, learnt from it alone; ``None`` where nothing is learnt from it."""
    with quietly():
        return learn(data, mapper.info.body_leaves if mapper.is_plain else (), partial(_probe, mapper))


def _probe(
    mapper: Mapper, data: bytes, id_factory: Callable[[], str], clock: Callable[[], datetime]
) -> ChatResponse:
    return read_body(mapper, data, ReaderOptions(id_factory=id_factory, clock=clock))

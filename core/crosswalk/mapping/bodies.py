"""Whole bodies: what has been learnt of a provider's, and the general way to read one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from crosswalk.mapping.log import quietly
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.mapper import Mapper
from crosswalk.shapes import Shape, Shapes
from crosswalk.types.json import load_json
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.shape import Shape as BodyShape

__all__ = ["learn_body", "read_body", "shape_of", "shapes_of"]

_LARGEST: Final = 2**20
"""Of a larger body nothing is learnt: to read it costs what its parsing costs, whatever is around its text."""


def shapes_of(mapper: Mapper) -> Shapes[Shape]:
    """What is known of the bodies of this provider."""
    found: Shapes[Shape] | None = mapper.memory.get(Shapes)
    if found is None:
        # Learning takes as long as reading fifty, and to find that none of sixteen fits a tenth of reading one.
        shapes: Shapes[Shape] = Shapes(cost=50, first=4, most=16, patience=64)
        found = mapper.memory.setdefault(Shapes, shapes)
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

    def made(_: object) -> Shape | None:
        read = shape_of(mapper, data)
        return None if read is None else Shape(read)

    is_open = mapper.is_plain and (mapper.info.body_leaves or mapper.info.speaks)
    if is_open and _may_be_learnt(data):
        shapes_of(mapper).note(response, made)


def _may_be_learnt(data: bytes) -> bool:
    return data.startswith(b"{") and len(data) <= _LARGEST


def shape_of(mapper: Mapper, data: bytes) -> BodyShape | None:
    """What reads bodies like *data*, learnt from it alone; ``None`` where its plugin's promises do not hold or help."""
    from crosswalk.mapping.learnt.shape import learn  # one body alone needs none

    if not _may_be_learnt(data):
        return None
    with quietly():
        reader = _reader_of(mapper, data)
        if not (mapper.is_plain and reader.is_plain):
            return None
        info = reader.info
        return learn(data, info.body_leaves, partial(_probe, mapper), info.logprob_leaves)


def _reader_of(mapper: Mapper, data: bytes) -> Mapper:
    """Who reads *data*, in whose dialect the server has answered."""
    if mapper.info.speaks:
        with suppress(Exception):  # then it reads nothing else either
            return mapper.dialect_of(load_json(data)) or mapper
    return mapper


def _probe(
    mapper: Mapper, data: bytes, id_factory: Callable[[], str], clock: Callable[[], datetime]
) -> ChatResponse:
    return read_body(mapper, data, ReaderOptions(id_factory=id_factory, clock=clock))

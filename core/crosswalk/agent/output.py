"""What an agent's answer has to be, and the value in what the model wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from crosswalk.agent.twins import refusal_of, twin_of
from crosswalk.errors import ConfigurationError
from crosswalk.structured import Schema, SchemaDefinitionError, StructuredParser
from crosswalk.types.response import ChatResponse

__all__ = ["Output"]


@attrs.frozen
class Output:
    """A type of answer.

    Attributes:
        parser: reads what the model wrote.
        instructions: tells the model the form.
        restore: makes the value of what was read; ``None`` where that is it.
    """

    parser: StructuredParser[Any]
    instructions: str
    restore: Callable[[Any], Any] | None = None

    @classmethod
    def of(cls, kind: Any) -> Output:
        """The type of answer that *kind* means: a class, a schema, or a parser of one schema.

        Raises:
            SchemaDefinitionError: none.
            ConfigurationError: a parser of several versions.
        """
        restore = None
        if isinstance(kind, StructuredParser):
            parser = kind
        else:
            if not isinstance(kind, Schema):
                try:
                    twin = twin_of(kind, {})
                except (TypeError, NameError) as error:
                    raise SchemaDefinitionError(f"output_type: {error}") from None
                kind, restore = twin.kind, twin.restore
            parser = StructuredParser(kind)
        if not isinstance(parser.schema, Schema):
            raise ConfigurationError("output_type needs one schema, not several versions", key="output_type")
        return cls(parser, parser.schema.instructions(), restore)

    def read(self, answer: ChatResponse) -> tuple[Any, str]:
        """The value in *answer*, and what is wrong where there is none."""
        result = self.parser.parse(answer)
        if not result.ok:
            return None, "; ".join(result.errors) or result.reason.value
        try:
            return (result.value if self.restore is None else self.restore(result.value)), ""
        except Exception as error:  # whatever the class raises is its way to refuse
            return None, refusal_of(error)

"""What an agent's answer has to be, and the value in what the model wrote."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.structured import Prose, Schema, StructuredParser
from crosswalk.types.response import ChatResponse

__all__ = ["Output"]


@attrs.frozen
class Output:
    """A type of answer.

    Attributes:
        parser: reads what the model wrote.
        instructions: tells the model the form.
    """

    parser: StructuredParser[Any]
    instructions: str

    @classmethod
    def of(cls, kind: Any, prose: Any = Prose.ALLOW) -> Output:
        """The type of answer that *kind* means: a type, a schema, or a parser of one schema.

        Raises:
            SchemaDefinitionError: *kind* cannot be the type of an answer.
            ConfigurationError: a parser of several versions.
        """
        parser = kind if isinstance(kind, StructuredParser) else StructuredParser(kind, prose=prose)
        if not isinstance(parser.schema, Schema):
            raise ConfigurationError("output_type needs one schema, not several versions", key="output_type")
        instructions = parser.schema.instructions()
        if parser.schema.server_schema()[1]:
            parser = parser.with_null_as_default()
        return cls(parser, instructions)

    def read(self, answer: ChatResponse) -> tuple[Any, str]:
        """The value in *answer*, and what is wrong where there is none."""
        result = self.parser.parse(answer)
        return (result.value, "") if result.ok else (None, "; ".join(result.errors) or result.reason.value)

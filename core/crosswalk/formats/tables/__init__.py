"""One table for each format that a client speaks: all that it may say, with the canonical place, the kind and the spelling.

Readers, builders, the names of what is dropped, the page of requests and their tests use the same tables. The table of a
server is that of its format, with rows more or fewer that its plugin states.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crosswalk.formats.tables.chat import CHAT, CHAT_SERVER, COMPLETIONS, OPENAI_CHAT as OPENAI_CHAT
from crosswalk.formats.tables.gemini import GEMINI
from crosswalk.formats.tables.messages import MESSAGES
from crosswalk.formats.tables.ollama import GENERATE, OLLAMA
from crosswalk.formats.tables.responses import RESPONSES
from crosswalk.request import HTTPRequest
from crosswalk.wire.rows import RequestTable

TABLES: Final[Mapping[str, RequestTable]] = MappingProxyType(
    {table.key: table for table in (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA, GENERATE, GEMINI)}
)
"""The tables of what clients may say, by the name of the format."""


def table_of(built: HTTPRequest) -> RequestTable | None:
    """Return the table of the server that *built* goes to, or ``None`` if no table is known."""
    return built.table or table_of_path(built.path)


def table_of_path(path: str) -> RequestTable | None:
    """Return the table of the servers with an endpoint at *path*, or ``None`` if it is another one."""
    plain = path.partition("?")[0]
    table = next((table for table in TABLES.values() if plain.endswith(table.paths)), None)
    return CHAT_SERVER if table is CHAT else table

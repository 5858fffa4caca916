"""The Responses API as types: responses, stream events and requests, without dropping a field.

Every object of the API is a :class:`Record`, an immutable attrs value. ``None`` means that the field was not sent, or
sent as ``null``; ``presence`` distinguishes the two. Fields without an attribute are in ``extensions``.
:func:`to_json` writes the JSON value that :func:`parse_response`, :func:`parse_event`, :func:`parse_item` and
:func:`parse` read. Class names are those of the official SDK. A field named like a keyword has an underscore
(``async_``).

====================== ===============================================================================================
``records``            how a type is declared: ``@record class X(Record)``
``hooks``              how cattrs reads and writes records
``making``             the values that their constructors accept
``families``           unions whose members are distinguished by ``type``
``unions``             the unions, loaded when needed
``reading``            ``parse…``, ``to_json``, ``to_dict``, and ``unknown="raise"`` or ``"keep"`` (``UnknownItem`` …)
``response``           ``Response`` and its token counts, with its parts in ``details`` and ``formats``
``parsed``             ``ParsedResponse[T]``
``items``              the unions ``ResponseOutputItem`` and ``ResponseInputItem``, and ``register_item``
``messages``           ``ResponseOutputMessage``, ``InputMessage``, ``EasyInputMessage``, ``ResponseReasoningItem``
``function_calls``     calls that the client answers, and their outputs (``ToolOutput``)
``search_calls``       file search, web search, tool search
``server_calls``       code interpreter, image generation, MCP
``computer_calls``     computer use
``shell_calls``        shells and patches
``content``            content parts and log probabilities
``annotations``        the sources that a text cites
``tools``              tool definitions, with ``function_tools`` and ``search_tools``
``tool_choice``        the choice of a tool
``containers``         the environments of tools
``params``             ``ResponseCreateParams``
``events``             the union ``ResponseStreamEvent`` and every event, and ``register_event``
``accumulator``        ``ResponseAccumulator``: events to snapshots of the response
``toolkit``            ``ResponseToolCall``: the calls of all tools behind one interface, and ``register_tool_call``
``chunks``             the results of tool calls in one form
``cited``              ``CitedResponse``: sources, numbered, located in the text and compressed
``pipeline``           ``StreamHandler``: events through processors to displays
``display``            ``DisplayStrategy``: plain text, live terminal, JSON Lines
``vocabulary``         statuses and roles, which are closed sets
``ids``                ids with prefixes, generated and checked
``errors``             the exceptions
====================== ===============================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.accumulator import *
    from crosswalk.responses.annotations import *
    from crosswalk.responses.chunks import *
    from crosswalk.responses.cited import *
    from crosswalk.responses.computer_calls import *
    from crosswalk.responses.containers import *
    from crosswalk.responses.content import *
    from crosswalk.responses.details import *
    from crosswalk.responses.display import *
    from crosswalk.responses.errors import *
    from crosswalk.responses.events import *
    from crosswalk.responses.formats import *
    from crosswalk.responses.function_calls import *
    from crosswalk.responses.function_tools import *
    from crosswalk.responses.ids import *
    from crosswalk.responses.item import *
    from crosswalk.responses.items import *
    from crosswalk.responses.messages import *
    from crosswalk.responses.params import *
    from crosswalk.responses.parsed import *
    from crosswalk.responses.pipeline import *
    from crosswalk.responses.reading import *
    from crosswalk.responses.records import *
    from crosswalk.responses.response import *
    from crosswalk.responses.search_calls import *
    from crosswalk.responses.search_tools import *
    from crosswalk.responses.server_calls import *
    from crosswalk.responses.shell_calls import *
    from crosswalk.responses.tool_choice import *
    from crosswalk.responses.toolkit import *
    from crosswalk.responses.tools import *
    from crosswalk.responses.vocabulary import *
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "accumulator annotations chunks cited computer_calls containers content "
        "details display errors events formats function_calls function_tools ids item items messages params parsed "
        "pipeline reading records response search_calls search_tools server_calls shell_calls tool_choice toolkit "
        "tools vocabulary",
    )

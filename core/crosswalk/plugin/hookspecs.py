"""What a provider plugin can say: the hooks, as pluggy specifications.

A plugin is a module or an object with some of these functions, each marked ``@crosswalk.hookimpl``. None of them
calls another: the reader composes them. An implementation may leave out arguments that it does not need.

A hook is deprecated with pluggy's own options: ``@hookspec(firstresult=True, warn_on_impl=DeprecationWarning("…"))``, and
an argument of it with ``warn_on_impl_args={"name": DeprecationWarning("…")}``. Python shows the warning with the file and
line of the plugin's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

from crosswalk.errors import ErrorInfo
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.finish import FinishReason
from crosswalk.types.usage import UsageInfo

if TYPE_CHECKING:
    from crosswalk.plugin.info import ProviderInfo, Recognition
    from crosswalk.plugin.state import MappingState

__all__ = ["PROJECT", "ProviderHooks", "hookimpl", "hookspec", "requests_of"]

PROJECT = "crosswalk"

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks the specification of a hook; a plugin does not need it."""
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as a hook; ``@hookimpl(wrapper=True)`` puts it around the others, as in pluggy."""


class ProviderHooks(Protocol):
    """The hooks of a provider, for a type checker: subclass it, and each hook is held to its arguments and its result.

    A hook of a subclass names all of its arguments. Those that the subclass leaves out are not hooks of it.
    """

    @hookspec(firstresult=True)
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta] | None:
        """Say which deltas *event* stands for, in order: none, one or many.

        Called once for every event; a complete body is one event. The event is the hook's: what it understands it takes
        (``take_string(event, "text")``), and what is left reaches the extensions. The reader numbers the deltas. One that
        ends a choice carries the provider's word as ``raw_finish_reason``. A hook that is a generator loses nothing of what
        it gave before it raised.

        :param event: the decoded JSON, to be taken apart.
        :param state: the state of this answer.
        :return: the deltas; an empty tuple when the event adds nothing.
        :raises UnknownEventError: the event is of a type that this plugin does not know.
        :raises WireTypeError: what decides the answer has another type than the API promises.
        """
        return None

    @hookspec(firstresult=True)
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Say what the provider's finish word means.

        Called with each ``raw_finish_reason`` that ``map_delta`` gave. Whether tools were called need not be
        considered: the reader turns ``stop`` into ``tool_calls`` where a call is present. A plugin without
        this hook says that its API has no terminal signal: the end of the input is the end of the answer.

        :param reason: the word, verbatim; ``""`` where the provider ended without one.
        :param state: the state of this answer.
        :return: the canonical reason; ``None`` for a word that is not known.
        :raises UnknownFinishReasonError: likewise.
        """
        return None

    @hookspec(firstresult=True)
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the token counts of *event*, usually with ``accept_count`` and ``state.usage_info``.

        A later report replaces an earlier one field by field; nothing is ever added up. A count that the
        provider did not send is 0 and noted as absent.

        :param event: what ``map_delta`` has left of the event.
        :param state: the state of this answer.
        :return: the counts, or ``None`` where the event has none.
        """
        return None

    @hookspec(firstresult=True)
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any] | None:
        """Say what of an event's rest belongs into the extensions, and where. Without this hook all of it does.

        :param event: what the other hooks have left, without the objects and arrays that they emptied.
        :param state: the state of this answer.
        :return: the rest in the provider's own structure; ``{}`` when nothing is left.
        """
        return None

    @hookspec(firstresult=True)
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """Say what an HTTP error means.

        :param status: the HTTP status, 400 or above.
        :param body: the decoded JSON, or the text of a body that is no JSON; ``""`` for an empty one.
        :return: kind, message and whether a retry may help; ``None`` to leave it to the general rules.
        """
        return None

    @hookspec(firstresult=True)
    def provider_info(self) -> ProviderInfo | None:
        """Describe the provider: its endpoints, and what may be taken for granted about its events.

        :return: the description; ``None`` for one that promises nothing.
        """
        return None

    @hookspec(firstresult=True)
    def recognizes(self, event: Any) -> Recognition | None:
        """Say whether *event* looks like this provider's, for payloads of unknown origin.

        :param event: one decoded event or body.
        :return: ``Recognition.NO``, ``POSSIBLE`` when the dialect fits, ``CERTAIN`` when no other server writes this.
        """
        return None

    @hookspec(firstresult=True)
    def build_request(self, request: Any) -> Any:
        """Build the provider's HTTP request for a canonical one; used by the service.

        :param request: a ``crosswalk.service.ChatRequest``.
        :return: a ``crosswalk.service.HTTPRequest``, without any credential.
        :raises UnsupportedRequestError: the provider cannot express its content.
        """
        return None


def requests_of(module: str) -> Callable[[Any], Any]:
    """The hook ``build_request`` as the function of that name in *module*, which is imported when a request is built.

    So reading answers loads nothing of the service. In a class it is a static method:
    ``build_request = staticmethod(requests_of("my_plugin.requests"))``.
    """

    @hookimpl
    def build_request(request: Any) -> Any:
        return import_module(module).build_request(request)

    return build_request

"""The hooks of a provider plugin, as pluggy specifications.

A plugin is a module or an object with some of these functions, each marked ``@crosswalk.hookimpl``. Hooks do not call
each other: the reader composes them. An implementation may leave out arguments that it does not need.

A hook is deprecated with pluggy's own options: ``@hookspec(firstresult=True, warn_on_impl=DeprecationWarning("…"))``.
An argument is deprecated with ``warn_on_impl_args={"name": DeprecationWarning("…")}``. Python shows the warning with
the file and line of the plugin's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

from crosswalk.errors import ErrorInfo
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason

if TYPE_CHECKING:
    from crosswalk.plugin.info import ProviderInfo, Recognition
    from crosswalk.plugin.state import MappingState


PROJECT = "crosswalk"

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks the specification of a hook. A plugin does not need it."""
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as a hook. ``@hookimpl(wrapper=True)`` puts it around the others, as in pluggy."""


class ProviderHooks(Protocol):
    """The hooks of a provider, for a type checker. Subclass it, and each hook is checked for its arguments and its
    result.

    A hook of a subclass names all of its arguments. The hooks that a subclass leaves out are not hooks of it.
    """

    @hookspec(firstresult=True)
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta] | None:
        """Return the deltas that *event* stands for, in order: none, one or many.

        Called once for every event. A complete body is one event. The hook owns the event: it takes the fields that it
        understands (``take_string(event, "text")``), and the remaining ones reach the extensions. The reader numbers
        the deltas. A delta that ends a choice carries the provider's word as ``raw_finish_reason``. If a hook is a
        generator and raises, the deltas that it yielded before are kept.

        :param event: the decoded JSON, to be taken apart.
        :param state: the state of this answer.
        :return: the deltas, or an empty tuple if the event adds nothing.
        :raises UnknownEventError: this plugin does not know the type of the event.
        :raises WireTypeError: a field that decides the answer has another type than the API promises.
        """
        return None

    @hookspec(firstresult=True)
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Return the canonical meaning of the provider's finish word.

        Called with each ``raw_finish_reason`` that ``map_delta`` returned. The hook does not need to consider whether
        tools were called: the reader turns ``stop`` into ``tool_calls`` if a call is present. A plugin without this
        hook declares that its API has no terminal signal: the end of the input is the end of the answer.

        :param reason: the word, verbatim, or ``""`` if the provider ended without one.
        :param state: the state of this answer.
        :return: the canonical reason, or ``None`` for an unknown word.
        :raises UnknownFinishReasonError: the word is unknown, as for ``None``.
        """
        return None

    @hookspec(firstresult=True)
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the token counts of *event*, usually with ``accept_count`` and ``state.usage_info``.

        A later report replaces an earlier one field by field; counts are never added up. A count that the provider did
        not send is 0 and noted as absent.

        :param event: the fields of the event that ``map_delta`` did not take.
        :param state: the state of this answer.
        :return: the counts, or ``None`` if the event has none.
        """
        return None

    @hookspec(firstresult=True)
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any] | None:
        """Return the part of an event's residue that belongs into the extensions, and its location there.

        Without this hook, the whole residue goes into the extensions.

        :param event: the fields that the other hooks did not take, without the objects and arrays that they emptied.
        :param state: the state of this answer.
        :return: the residue in the provider's own structure, or ``{}`` if nothing remains.
        """
        return None

    @hookspec(firstresult=True)
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """Return the meaning of an HTTP error.

        :param status: the HTTP status, 400 or above.
        :param body: the decoded JSON, or the text of a body that is not JSON, or ``""`` for an empty body.
        :return: kind, message and whether a retry may help, or ``None`` to leave it to the general rules.
        """
        return None

    @hookspec(firstresult=True)
    def provider_info(self) -> ProviderInfo | None:
        """Describe the provider: its endpoints, and the guarantees about its events.

        :return: the description, or ``None`` if the provider guarantees nothing.
        """
        return None

    @hookspec(firstresult=True)
    def recognizes(self, event: Any) -> Recognition | None:
        """Return how well *event* fits this provider. Used for payloads of unknown origin.

        :param event: one decoded event or body.
        :return: ``Recognition.NO``, ``POSSIBLE`` if the dialect fits, or ``CERTAIN`` if no other server writes this.
        """
        return None

    @hookspec(firstresult=True)
    def build_request(self, request: Any) -> Any:
        """Build the provider's HTTP request for a canonical one. Used by the service.

        :param request: a ``crosswalk.service.ChatRequest``.
        :return: a ``crosswalk.service.HTTPRequest``, without any credential.
        :raises UnsupportedRequestError: the provider cannot express the content of the request.
        """
        return None


def requests_of(module: str) -> Callable[[Any], Any]:
    """Return a hook ``build_request`` that calls the function of that name in *module*.

    *module* is imported when a request is built, so reading answers loads no part of the service. In a class it is a
    static method: ``build_request = staticmethod(requests_of("my_plugin.requests"))``.
    """

    @hookimpl
    def build_request(request: Any) -> Any:
        return import_module(module).build_request(request)

    return build_request

"""Everything that the author of a provider plugin needs, in one module. A plugin imports nothing else of Crosswalk.

A plugin is an object with two to four of the hooks, each marked :data:`hookimpl`, registered under the entry-point
group ``crosswalk.providers``. Its hooks take the known values from an event (``take_…``, ``accept_…``), and the rest reaches
``metadata.extensions``. :data:`API` is the version of this module and of the hooks. Within a version, names stay and
signatures only gain keywords. A plugin names its version in ``ProviderInfo(api=…)``.

``ChatRequest``, ``HTTPRequest`` and other names for requests are loaded on first use, because reading answers does not need
them. Import them in ``build_request``. Names that few plugins need are loaded on first use, too.

A module whose whole ``__all__`` is public is imported with ``*``. You add a public name to that ``__all__``, and nowhere
else.
"""

from typing import TYPE_CHECKING

from crosswalk.errors import *
from crosswalk.lazy import lazy
from crosswalk.mapping.chat_leaves import *
from crosswalk.mapping.choices import Echo as Echo
from crosswalk.mapping.dialects import *
from crosswalk.mapping.ending import take_end as take_end
from crosswalk.mapping.failures import *
from crosswalk.mapping.logprobs import *
from crosswalk.mapping.openai_chat import *
from crosswalk.mapping.times_and_costs import *
from crosswalk.plugin.hookspecs import (
    ProviderHooks as ProviderHooks,
    hookimpl as hookimpl,
    requests_of as requests_of,
)
from crosswalk.plugin.info import *
from crosswalk.plugin.state import MappingState as MappingState
from crosswalk.plugin.take import *
from crosswalk.types.delta import *
from crosswalk.types.filter import *
from crosswalk.types.finish import *
from crosswalk.types.json import *
from crosswalk.types.logprob import *
from crosswalk.types.merge import same_json as same_json
from crosswalk.types.message import *
from crosswalk.types.metadata import *
from crosswalk.types.raw import *
from crosswalk.types.response import *
from crosswalk.types.segment import *
from crosswalk.types.tools import *
from crosswalk.types.usage import *
from crosswalk.wire import ollama as ollama
from crosswalk.wire.framing import (
    NEED_MORE as NEED_MORE,
    Decoder as Decoder,
    Frame as Frame,
    LineDecoder as LineDecoder,
    NeedMore as NeedMore,
    PushDecoder as PushDecoder,
)
from crosswalk.wire.limits import Limits as Limits
from crosswalk.wire.ndjson import NDJSONDecoder as NDJSONDecoder

if TYPE_CHECKING:
    from crosswalk.mapping.blocks import *
    from crosswalk.mapping.totals import *
    from crosswalk.plugin.signed import *
    from crosswalk.plugin.way_back import *
    from crosswalk.service.http_request import *
    from crosswalk.service.openai_chat import *
    from crosswalk.service.options import *
    from crosswalk.service.request import *
    from crosswalk.service.tools import *
    from crosswalk.service.turns import *
    from crosswalk.service.way_back.state import *
    from crosswalk.types.builder import *
    from crosswalk.types.event import *
    from crosswalk.wire import gemini as gemini, messages as messages, responses as responses
    from crosswalk.wire.responses_request import *
    from crosswalk.wire.sse import *
else:
    # A test runner that rewrites assertions adds its own names here.
    _names = [name for name in globals() if name[0].isalpha() and name not in ("TYPE_CHECKING", "lazy")]
    _modules = (
        "plugin.way_back plugin.signed mapping.blocks mapping.totals "
        "service.http_request service.openai_chat service.options service.request service.tools "
        "service.turns service.way_back.state "
        "types.builder types.event wire.responses_request wire.sse"
    )
    _forms = {
        "gemini": "crosswalk.wire.gemini",
        "messages": "crosswalk.wire.messages",
        "responses": "crosswalk.wire.responses",
    }
    __getattr__, __dir__ = lazy(__name__, _modules, beside=_names, submodules=_forms)

"""Fits a request to its model: what the facts about the model's class change in it, each change named.

:mod:`crosswalk.service.building` calls this for every request. The facts are in :mod:`crosswalk.service.model_facts`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError, PluginError
from crosswalk.formats.reading import table_of
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.registry import Mapper, Registry, registry as default_registry
from crosswalk.request import (
    Adaptation,
    AdaptationKind,
    ChatRequest,
    HTTPRequest,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    UnsupportedRequestError,
    kind_of,
)
from crosswalk.schemas.fitting import ANSWERS, FittedSchema, SchemaRules, fit_schema
from crosswalk.service.model_facts import (
    USER_FILE_VARIABLE,
    Depth,
    Facts,
    Limit,
    ModelClass,
    ModelMatch,
    class_of,
    schema_rules_of,
    shipped_facts,
    with_own_facts,
)
from crosswalk.service.turns import message_of, with_instructions
from crosswalk.types.json import FrozenObject, copy_json, thaw
from crosswalk.types.message import AudioPart, ChatMessage, FilePart, ImagePart, Role
from crosswalk.types.values import altered
from crosswalk.wire.options import OPTIONS, PlaceKind, RequestTable, get, put

T = TypeVar("T")
UNKNOWN: Final = "unknown"
"""The class of a model that no row describes."""

_WORDS: Final = tuple(ReasoningEffort)
_BUDGETS: Final = dict(zip(_WORDS[1:], (1024, 2048, 8192, 16384, 32768, 65536), strict=True))
"""The budget in tokens that counts as each word, to find a word for a budget."""
_DEMANDS: Final = ("tools", "tool_choice", "response_format")
"""Options that come before thinking: a model that takes them only without it is asked not to think."""
_FIELDS: Final = frozenset(attrs.fields_dict(ChatRequest))
_KINDS: Final = {"any": "required", "function": "named", "tool": "named", "custom": "named"}
"""The kinds of tool choices that servers spell otherwise."""
_OFF_VALUES: Final = ("none", "disabled", False, 0)
_PATHS_WITHOUT_THINKING: Final = {"outputconfig.effort"}
"""What a model takes without thinking, too, though it stands for an effort: Anthropic's, also at Bedrock."""
_MEDIA_KINDS: Final[dict[type, str]] = {ImagePart: "image", AudioPart: "audio", FilePart: "file"}


def facts_of(mapper: Mapper) -> Facts:
    """Return the facts about the models of *mapper*'s provider, from the user's file and from the plugin.

    Raises:
        ConfigurationError: the user's file cannot be read.
        PluginError: the plugin's file cannot be read.
    """
    user_file = os.environ.get(USER_FILE_VARIABLE, "")
    known: tuple[str, Facts] | None = mapper.learned.get("facts")
    if known is None or known[0] != user_file:
        known = user_file, with_own_facts(shipped_facts(mapper), user_file, mapper.provider)
        mapper.learned["facts"] = known
    return known[1]


def max_tokens_of(
    model: str, provider: str, model_class: str | None = None, *, registry: Registry | None = None
) -> int | None:
    """Return the longest answer of *model* in tokens, or ``None`` if unknown.

    Args:
        model: the model's name.
        provider: the provider's id.
        model_class: the class or the model that gives the rules, or ``None`` to look it up by the model's name.
        registry: the registry of providers, or ``None`` for the installed ones.

    Raises:
        ConfigurationError: there is no such class, or the user's file of classes is broken.
        UnknownProviderError: there is no such provider. PluginError: it is broken.
    """
    mapper = (default_registry if registry is None else registry).mapper(provider)
    match = match_of(facts_of(mapper), model, model_class, provider)
    return None if match is None else match.rules.max_tokens


def match_of(facts: Facts, model: str, model_class: str | None, provider: str) -> ModelMatch | None:
    """Return the class of *model* by *model_class*, or else by its name, or ``None`` if it is unknown.

    Raises:
        ConfigurationError: *model_class* names no class.
    """
    if model_class is None:
        return class_of(facts, model)
    rules = facts.named(model_class)
    if rules is None:
        raise ConfigurationError(
            f"{provider}: there is no model class {model_class!r:.60}", key="model_class"
        )
    return ModelMatch(model, rules)


def fit(request: ChatRequest, mapper: Mapper, model_class: str | None = None) -> Fit | None:
    """Return *request*, which names its model and provider, fitted to the model. ``None`` if there are no facts to apply.

    Nothing is applied if a client has written the request for this model in the server's own format.

    Args:
        request: the canonical request.
        mapper: the provider's mapper.
        model_class: the class or the model that gives the rules, whatever the model's name is, or ``None`` to look it up.

    Raises:
        ConfigurationError: there is no such class, or the user's file of classes is broken. PluginError: the plugin's is.
        UnsupportedRequestError: the model does not take the kind of content in a message.
    """
    facts = facts_of(mapper)
    model = request.model or ""
    if model_class is None and not any(facts.layers):
        return None
    match = match_of(facts, model, model_class, mapper.provider)
    table = _table_of(mapper)
    if request.is_for(None if table is None else table.key, model):
        return None
    return Fit(request, match, facts, table)


def with_fitting_schemas(
    request: ChatRequest, mapper: Mapper, model_class: str | None = None
) -> tuple[ChatRequest, tuple[Adaptation, ...]]:
    """Return *request* with schemas that its server takes, and what was changed for that.

    If the server takes no such schema, or not with the rest of the request, the description says it in words. Nothing
    changes if a client has written the request for this model in the server's own format.

    Args:
        request: the canonical request, which names its model and provider.
        mapper: the provider's mapper.
        model_class: as for :func:`fit`.

    Raises:
        ConfigurationError: the user's file of classes is broken. PluginError: the plugin's is.
    """
    response_format, model = request.response_format, request.model or ""
    has_schema = response_format is not None and response_format.schema is not None
    if not (has_schema or request.tools):
        return request, ()
    rules = schema_rules_of(facts_of(mapper), model_class or model)
    if rules is None:
        rules = SchemaRules(tools="never") if has_schema else None
    table = _table_of(mapper)
    if rules is None or request.is_for(None if table is None else table.key, model):
        return request, ()
    changes: list[Adaptation] = []
    if rules.tools != "never":
        spent_counts: Counter[str] = Counter()
        if (
            rules.most_of_request
            and response_format is not None
            and has_schema
            and rules.answer == "json_schema"
        ):
            spent_counts += fit_schema(
                response_format.schema or {}, rules, null_is_absent=response_format.null_is_absent
            ).counts
        tools = tuple(
            _fitting_tool(tool, n, rules, changes, spent_counts) for n, tool in enumerate(request.tools)
        )
        request = altered(request, tools=tools)
    if response_format is not None and has_schema:
        request = _with_answer(request, response_format, rules, changes)
    return request, tuple(changes)


def _fitting_tool(
    tool: ToolDefinition,
    number: int,
    rules: SchemaRules,
    changes: list[Adaptation],
    spent_counts: Counter[str],
) -> ToolDefinition:
    """Return *tool* in a form that a server with *rules* takes, if *spent_counts* of its limits are used."""
    if tool.is_custom or not (tool.strict or rules.tools == "always"):
        return tool
    fitted_schema = fit_schema(tool.parameters, rules, is_answer=False)
    total_counts = spent_counts + fitted_schema.counts + Counter(strict_tools=1)
    problem = fitted_schema.impossible[0] if fitted_schema.impossible else rules.excess(total_counts)
    if problem is None:
        spent_counts.update(total_counts - spent_counts)
        _note(fitted_schema, f"tools[{number}].parameters", rules, changes)
        return attrs.evolve(tool, parameters=FrozenObject(fitted_schema.schema))
    if not tool.strict:
        return tool
    reason = f"{rules.id} does not take {problem}"
    changes.append(Adaptation(f"tools[{number}].strict", "clamped", reason, asked=True, sent=False))
    return attrs.evolve(tool, strict=False)


def _with_answer(
    request: ChatRequest, response_format: ResponseFormat, rules: SchemaRules, changes: list[Adaptation]
) -> ChatRequest:
    """Return *request* with the answer that is *response_format* in the form that a server with *rules* takes."""
    assert response_format.schema is not None, "the caller has looked"
    answer_form, reason = rules.answer, "the server takes no schema"
    forms_beside = {
        "tools": rules.answer_with_tools if request.tools else None,
        "a stream": rules.streamed if request.stream else None,
    }
    for companion, other_form in forms_beside.items():
        if other_form is not None and ANSWERS.index(other_form) > ANSWERS.index(answer_form):
            answer_form, reason = other_form, f"the server takes no schema beside {companion}"
    is_free = rules.strict == "lifts" and not response_format.strict
    fitted_schema = fit_schema(response_format.schema, rules, null_is_absent=response_format.null_is_absent)
    if answer_form == "json_schema" and fitted_schema.impossible and not is_free:
        reason = f"{rules.id} does not take {fitted_schema.impossible[0]}"
        if rules.strict == "lifts" and fitted_schema.is_object:
            changes.append(Adaptation("response_format.strict", "clamped", reason, asked=True, sent=False))
            is_free = True
        else:
            answer_form = rules.otherwise
    if answer_form != "json_schema":
        changes.append(
            Adaptation(
                "response_format",
                "told",
                f"{reason}; the model is told it in words",
                asked="json_schema",
                sent=answer_form,
            )
        )
        object_format = ResponseFormat(name=response_format.name) if answer_form == "json_object" else None
        labels = {"name": None if response_format.name == ResponseFormat().name else response_format.name}
        for label, value in {**labels, "description": response_format.description}.items():
            if value is not None:
                changes.append(Adaptation.dropped(f"response_format.{label}", reason, asked=value))
        return _told(altered(request, response_format=object_format), response_format)
    strict = response_format.strict and not is_free and rules.strict != "never"
    if response_format.strict and rules.strict == "never":
        changes.append(
            Adaptation(
                "response_format.strict",
                "clamped",
                f"{rules.id} takes no strict schema",
                asked=True,
                sent=False,
            )
        )
    if not is_free:
        _note(fitted_schema, "response_format", rules, changes)
    schema = response_format.schema if is_free else FrozenObject(fitted_schema.schema)
    sent_format = attrs.evolve(
        response_format, schema=schema, name=rules.fitting_name(response_format.name), strict=strict
    )
    request = altered(request, response_format=sent_format)
    return _told(request, response_format) if fitted_schema.moved and not rules.is_shown else request


def _note(fitted_schema: FittedSchema, place: str, rules: SchemaRules, changes: list[Adaptation]) -> None:
    """Name the keywords that went into descriptions."""
    for keyword, places in fitted_schema.moved.items():
        reason = f"{rules.id} does not check it; a description tells it"
        changes.append(
            Adaptation(f"{place}.{keyword}", "told", reason, asked=list(places), sent="description")
        )


def _told(request: ChatRequest, response_format: ResponseFormat) -> ChatRequest:
    """Return *request* with the schema in words before its messages, unless they tell it already."""
    if response_format.is_told:
        return request
    from crosswalk.schemas.json_schema import as_words

    return with_instructions(request, as_words(thaw(response_format.schema)))


def _table_of(mapper: Mapper) -> RequestTable | None:
    """Return the table of the server that *mapper* asks, or ``None`` if only that server has the format.

    Raises:
        PluginError: the plugin fails to build a request.
    """
    if "table" not in mapper.learned:
        try:
            http_request = built(ChatRequest("-", model="-", provider=mapper.provider), mapper)
        except PluginError:
            raise
        except CrosswalkError:
            return None
        mapper.learned["table"] = table_of(http_request)
    table: RequestTable | None = mapper.learned["table"]
    return table


class Fit:
    """A request that fits its model.

    Attributes:
        request: the request for the plugin.
    """

    def __init__(
        self, request: ChatRequest, match: ModelMatch | None, facts: Facts, table: RequestTable | None
    ) -> None:
        self.request = request
        self._match = match
        self._facts = facts
        self._table = table
        self._format = None if table is None else table.key
        own_options = request.provider_options.get(request.provider or "")
        self._provider_options = thaw(own_options) if own_options else {}
        self._adaptations: list[Adaptation] = []
        self._original_request = request
        self._form: dict[str, Any] = {}
        self._limits: tuple[Limit, ...] = ()
        self._is_off = self._has_budget = False
        self._is_thinking = False
        if match is not None:
            self._fit(match.rules)

    def finished(self, http_request: HTTPRequest) -> HTTPRequest:
        """Return *http_request* with what the class of the model needs in the body, and with all that was changed."""
        body = self._shown(http_request.body)
        body = body if self._match is None else self._fitted(body, self._match.rules)
        return altered(
            http_request,
            body=body,
            adaptations=(*self._left(http_request.adaptations), *self._adaptations),
            model_class=UNKNOWN if self._match is None else self._match.label,
        )

    def _left(self, named: Iterable[Adaptation]) -> Iterator[Adaptation]:
        """Return those *named* that are true: the API may have no place for a budget, and the form of the model has one."""
        is_mine = self._has_budget or any(one.field == "thinking_budget" for one in self._adaptations)
        names = self._original_request.names_of("thinking_budget") if is_mine else ()
        return (one for one in named if one.field not in names)

    def _shown(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return *body* without a wish to see the reasoning, if the model is not to reason and the wish switches that on.

        If the model is to reason, the form has the switch.
        """
        row = None if self._table is None else self._table.row("reasoning_summary")
        shown = None if row is None else get(body, row.path)
        if row is None or not row.beside or shown is None:
            return body
        if self._match is None:
            request = self._original_request
            is_asked = request.reasoning_effort not in (None, ReasoningEffort.NONE)
            self._is_thinking = is_asked or bool(request.thinking_budget) or bool(self._statements())
        switches = [path for path in row.beside if not self._is_thinking or get(self._form, path) is not None]
        body = copy_json(body)
        if not self._is_thinking:
            self._change("reasoning_summary", row.value_of(shown), None, "it would switch on thinking")
            _remove(body, row.path.split("."))
        for path in switches:
            _remove(body, path.split("."))
        return body

    def _fitted(self, body: dict[str, Any], rules: ModelClass) -> dict[str, Any]:
        """Return *body* with the form that asks for thinking.

        A client's format may have brought options in the server's own words. Those that the model refuses are left out and
        named. A budget stays if the model takes budgets.
        """
        removed_paths: list[list[str]] = []
        for limit in self._limits:
            body = self._without_word(body, limit)
            path = self._path(limit.option)
            if path and not limit.operator and (value := _value_at(body, path)) is not None:
                removed_paths.append(path)
                self._refuse(limit, value)
        path = self._path("thinking_budget")
        budget = None if path in removed_paths else _value_at(body, path)
        if budget is not None and (self._form or self._is_off or not _takes_budgets(rules)):
            # The form has one that the model takes. Without a form, what stands beside a budget says the same as it.
            removed_paths.append(path if self._form else path[:-1] or path)
            if not (self._form or any(one.field == "thinking_budget" for one in self._adaptations)):
                reason = "does not think here" if self._is_off else "takes no budget"
                self._change("thinking_budget", budget, None, f"{self._model} {reason}")
        if removed_paths or self._form:
            body = copy_json(body)
            for path in removed_paths:
                _remove(body, path)
            _merge(body, self._form)
        return body

    def _without_word(self, body: dict[str, Any], limit: Limit) -> dict[str, Any]:
        """Return *body* without the option of *limit*, if the server has a word in a list for it."""
        row = None if self._table is None else self._table.row(limit.option)
        path, _, word = ("", "", "") if row is None else row.path.partition("[]=")
        words = get(body, path) if word and not limit.operator else None
        if not isinstance(words, list) or word not in words:
            return body
        self._refuse(limit, True)
        body = copy_json(body)
        _remove(body, path.split("."))
        if kept := [other for other in words if other != word]:
            put(body, path, kept)
        return body

    def _path(self, name: str) -> list[str]:
        """Return the path in the body of the option *name* if no field of a request holds it. Otherwise it is empty."""
        row = None if name in _FIELDS or self._table is None else self._table.row(name)
        return [] if row is None or "[" in row.path else row.path.split(".")

    @property
    def _model(self) -> str:
        assert self._match is not None, "only a known model has rules"
        if self._match.is_assumed:
            return f"{self._match.model:.60} (taken for {self._match.rules.id})"
        return f"{self._match.model:.60}"

    def _change(self, option: str, asked: Any, sent: Any, reason: str, *, refuses: bool = False) -> None:
        kind = AdaptationKind.DEFAULTED if asked is None else AdaptationKind.CLAMPED
        kind = AdaptationKind.DROPPED if sent is None else kind
        self._adaptations.append(Adaptation(option, kind, reason, asked=asked, sent=sent, refuses=refuses))

    def _alter(self, **changes: Any) -> None:
        self.request = altered(self.request, **changes)

    def _fit(self, rules: ModelClass) -> None:
        self._fit_media(rules)
        is_thinking = self._is_thinking = self._fit_effort(rules)
        self._limits = rules.refuses + (rules.refuses_thinking if is_thinking else rules.refuses_otherwise)
        for limit in self._limits:
            if limit.option == "prefill":
                self._refuse_prefill()
            elif limit.option == "model":
                self._refuse_model(limit)
            elif self._is_hit(limit):
                self._refuse(limit, self.request.option(limit.option))
        for limit in rules.ignores + (rules.ignores_thinking if is_thinking else ()):
            if self._is_hit(limit):
                value = self.request.option(limit.option)
                self._change(limit.option, value, value, f"it has no effect on {self._model}")
        if rules.needs_stream and is_thinking and not self.request.stream:
            self._change("stream", False, True, f"{self._model} answers in a stream alone while it thinks")
            self._alter(stream=True)

    def _refuse_model(self, limit: Limit) -> None:
        """Check that the model is on this API. If it is not, another endpoint may have it."""
        if limit.format not in (None, self._format):
            return
        reason = f"{self._model} is not on this API"
        if self._facts.other_api is not None:
            reason += f"; {self._facts.other_api} has it"
        raise UnsupportedRequestError(reason, provider=self.request.provider, options=["model"])

    # Messages.

    def _refuse_prefill(self) -> None:
        """Leave out an answer that the request begins for the model, and name it."""
        messages = self.request.messages
        last_message = message_of(messages[-1])
        if last_message.role is Role.ASSISTANT and not last_message.tool_calls and len(messages) > 1:
            self._change("messages", None, None, f"{self._model} does not continue an answer", refuses=True)
            self._alter(messages=messages[:-1])

    def _fit_media(self, rules: ModelClass) -> None:
        """Check that the model takes all kinds of content. If it does not, another endpoint may."""
        for number, turn in enumerate(self.request.messages if rules.inputs else ()):
            if not isinstance(turn, ChatMessage) or turn.content is None or isinstance(turn.content, str):
                continue
            kinds = {_MEDIA_KINDS.get(type(part), "text") for part in turn.content}
            if refused_kinds := kinds.difference(rules.inputs):
                raise UnsupportedRequestError(
                    f"messages[{number}]: {self._model} takes no {min(refused_kinds)}",
                    provider=self.request.provider,
                    options=["messages"],
                )

    # Thinking.

    def _fit_effort(self, rules: ModelClass) -> bool:
        """Write how the model is to think, and set ``max_tokens``. Return whether it will think."""
        asked_effort = self.request.reasoning_effort
        budget = self.request.thinking_budget
        effort = asked_effort
        statements = self._statements()
        off_paths = [path for path, value in statements.items() if self._switches_off(rules, path, value)]
        is_on = not off_paths and any(value is not None for value in statements.values())
        is_unwanted = asked_effort is ReasoningEffort.NONE or (asked_effort is None and budget == 0)
        if statements and (is_unwanted or not is_on):
            path = next(iter(off_paths or statements))
            for option, value in (("reasoning_effort", asked_effort), ("thinking_budget", budget)):
                if value is not None:
                    self._change(option, value, None, f"provider_options sets {path}")
            self._take_budget()
            self._alter(reasoning_effort=None)
            self._set_ceiling(rules, 0)
            return is_on or (rules.thinks and not off_paths)
        if type(budget) is not int or budget < 0:
            budget = None  # Gemini has -1 for a budget that the model chooses
        elif budget > 0 and asked_effort is ReasoningEffort.NONE:
            self._take_budget()
            self._change("thinking_budget", budget, None, "reasoning_effort is none", refuses=True)
            budget = None
        elif budget > 0:
            effort = self._of_budget(rules, budget)
        else:
            self._take_budget()
            effort, budget = asked_effort or ReasoningEffort.NONE, None
        if asked_effort is not None or effort is not None:
            self._alter(reasoning_effort=None)
        takes_words = bool(rules.effort.keys() - {ReasoningEffort.NONE})
        is_thinking = rules.thinks if effort is None else effort is not ReasoningEffort.NONE and takes_words
        can_stop = rules.off is not None or ReasoningEffort.NONE in rules.effort
        if is_thinking and can_stop and not is_on and (limit := self._demand(rules)) is not None:
            reason = f"{self._model} takes {limit} only while it does not think"
            is_refused = limit.option == "tools" and effort is not None
            if is_refused and self._facts.other_api is not None:
                reason += f"; {self._facts.other_api} takes both"
            self._change(
                "reasoning_effort", asked_effort, ReasoningEffort.NONE.value, reason, refuses=is_refused
            )
            effort = ReasoningEffort.NONE
        if effort is None:
            self._set_ceiling(rules, 0)
            return rules.thinks or is_on
        if effort is ReasoningEffort.NONE:
            return self._stop(rules, can_stop=can_stop)
        if not takes_words:
            thinking_phrase = "thinks as it does" if rules.thinks else "does not think"
            self._set_ceiling(rules, 0)
            self._change(
                "reasoning_effort",
                asked_effort,
                None,
                f"{self._model} {thinking_phrase}, and takes no effort",
            )
            return rules.thinks
        return self._think(rules, effort, budget)

    def _statements(self) -> dict[str, Any]:
        """Return what the provider options say of whether the model thinks, by its path. It comes before the request."""
        if not self._provider_options:
            return {}
        form_leaves = [leaf for form in self._facts.forms.values() for leaf in _leaves(form)]
        paths = {
            path for path, value in form_leaves if value is not True
        }  # True alone is about what is shown
        rows = () if self._table is None else self._table.rows
        paths |= {row.path for row in rows if row.place in ("reasoning_effort", "thinking_budget")}
        folded_paths = {folded(path) for path in paths} - _PATHS_WITHOUT_THINKING
        return {
            path: value for path, value in _leaves(self._provider_options) if folded(path) in folded_paths
        }

    def _switches_off(self, rules: ModelClass, path: str, value: Any) -> bool:
        """Return whether *value*, which the provider options have at *path*, switches the model's thinking off."""
        off_value = value_at(self._facts.forms.get(rules.off or "", {}), path)
        return is_off(value) or (value is not None and value == off_value)

    def _of_budget(self, rules: ModelClass, budget: int) -> ReasoningEffort | None:
        """Return the word for thinking with *budget* tokens, which take the place of the option."""
        asked_effort = self.request.reasoning_effort
        self._take_budget()
        if _takes_budgets(rules) or rules.budget_form is not None:
            return asked_effort or _word_of(budget)
        if asked_effort is not None or not rules.effort:
            reason = "beside reasoning_effort" if rules.effort else f"{self._model} takes no budget"
            self._change("thinking_budget", budget, None, reason)
            return asked_effort
        word = _word_of(budget).nearest(rules.effort)
        reason = f"{self._model} takes reasoning_effort in place of a budget"
        self._change("thinking_budget", budget, word.value, reason)
        return word

    def _take_budget(self) -> None:
        """Leave the option out of the request for the plugin: a form has the budget, or nothing has it."""
        options = {**self.request.extra_options}
        options.pop("thinking_budget", None)
        self._alter(extra_options=FrozenObject(options))

    def _demand(self, rules: ModelClass) -> Limit | None:
        """Return what the request or its provider options demand and the model takes only while it does not think."""
        limits = [limit for limit in rules.refuses_thinking if limit.option in _DEMANDS]
        provider_values = {name: self._provider_options.get(name) or None for name in _DEMANDS}
        return next(
            (one for one in limits if self._is_hit(one) or self._hits(one, provider_values[one.option])),
            None,
        )

    def _stop(self, rules: ModelClass, *, can_stop: bool) -> bool:
        """Ask the model not to think. Return whether it thinks all the same."""
        if not can_stop:
            words = [word for word in rules.effort if word is not ReasoningEffort.NONE]
            reason = f"no way is known to switch off the thinking of {self._model}"
            if words:
                reason += f"; the least is {words[0].value!r}"
            self._change("reasoning_effort", "none", words[0].value if words else None, reason, refuses=True)
            if words:
                return self._think(rules, words[0], None, is_named=True)
            self._set_ceiling(rules, 0)
            return True
        self._set_ceiling(rules, 0)
        self._is_off = True
        if ReasoningEffort.NONE in rules.effort:
            self._write(rules, ReasoningEffort.NONE, rules.effort[ReasoningEffort.NONE])
        elif rules.off is not None and rules.off != "omit":
            self._add_form(rules.off, Depth())
        return False

    def _think(
        self, rules: ModelClass, effort: ReasoningEffort, budget: int | None, *, is_named: bool = False
    ) -> bool:
        """Ask the model to think as *effort*, or as near as it can. Return whether it will.

        Args:
            rules: the rules of its class.
            effort: the word for it.
            budget: the caller's own budget, or ``None`` for that of the word.
            is_named: whether the change is named already.
        """
        if budget is not None and rules.budget_form is not None:
            self._set_ceiling(rules, 0)
            self._has_budget = self._add_form(rules.budget_form, Depth(budget=budget))
            return True
        word = effort.nearest(rules.effort)
        depth = rules.effort[word]
        reason = f"{self._model} takes no {effort.value!r}"
        if word is effort:
            depth_phrase = "a budget in tokens" if depth.word is None else f"{depth.word!r}"
            reason = f"{self._model} takes {depth_phrase} for it"
        if depth.budget is None:
            self._set_ceiling(rules, 0)
        else:
            asked_budget = budget or depth.budget
            min_budget, max_budget = rules.budget or (1, asked_budget)
            tokens = max(min_budget, min(asked_budget, max_budget))
            room = self._set_ceiling(rules, tokens)
            if budget is not None:
                reason = f"{self._model} thinks with {min_budget} to {max_budget} tokens"
            if room is not None and tokens > room:
                tokens, reason = room, "it must be below max_tokens"
            if tokens < min_budget:
                option, asked_value = (
                    ("reasoning_effort", effort.value) if budget is None else ("thinking_budget", budget)
                )
                reason = (
                    f"{self._model} thinks with at least {min_budget} tokens, and max_tokens leaves {tokens}"
                )
                self._change(option, asked_value, None, reason, refuses=True)
                return rules.thinks
            depth = attrs.evolve(depth, budget=tokens)
            if budget not in (None, tokens):
                self._change("thinking_budget", budget, tokens, reason)
        if not self._write(rules, word, depth):
            return True
        self._has_budget = budget is not None and depth.budget is not None
        is_same = isinstance(depth.shown, str) and depth.shown.lower() == effort.value
        if not (is_named or is_same or budget is not None):
            self._change("reasoning_effort", effort.value, depth.shown, reason)
        return True

    def _write(self, rules: ModelClass, word: ReasoningEffort, depth: Depth) -> bool:
        """Write *depth*, which stands for *word*. Return ``False`` if the provider options say how the model thinks."""
        if rules.form is not None and word is not ReasoningEffort.NONE:
            return self._add_form(rules.form, depth)
        self._alter(reasoning_effort=word)
        return True

    def _add_form(self, name: str, depth: Depth) -> bool:
        """Write the form *name*, but for the parts that the provider options write."""
        form = self._facts.form(name, depth)
        self._form, set_path = _without(form, self._provider_options, _words_in(self._facts.forms))
        if not self._form:
            option = (
                "thinking_budget" if self._original_request.reasoning_effort is None else "reasoning_effort"
            )
            asked_value = self._original_request.option(option)
            self._change(option, asked_value, None, f"provider_options sets {set_path}")
        return bool(self._form)

    def _set_ceiling(self, rules: ModelClass, budget: int) -> int | None:
        """Set ``max_tokens`` if the API needs it, or if it is above the model's. Return the room for a *budget*, if limited.

        Without ``max_tokens`` a class with a default gets it on top of the budget, or of that in the provider options.
        """
        set_budget = _value_at(self._provider_options, self._path("thinking_budget"))
        budget = set_budget if type(set_budget) is int and set_budget > 0 else budget
        asked_max, model_max, default_max = (
            self.request.max_tokens,
            rules.max_tokens,
            rules.default_max_tokens,
        )
        sent_max, reserved_tokens = asked_max, 1
        if asked_max is not None and model_max is not None and asked_max > model_max:
            sent_max = model_max
            self._change("max_tokens", asked_max, model_max, f"{self._model} writes at most as many")
        elif asked_max is None and model_max is not None and "max_tokens" in self._facts.needs:
            if not any(folded(name) == "maxtokens" for name in self._provider_options):
                sent_max = model_max if default_max is None else min(model_max, default_max + budget)
                self._change("max_tokens", None, sent_max, "the API needs it")
            reserved_tokens = 1 if default_max is None else default_max
        if sent_max != asked_max:
            self._alter(max_tokens=sent_max)
        return (
            sent_max - reserved_tokens
            if rules.budget_is_part_of_max_tokens and sent_max is not None
            else None
        )

    # Options.

    def _is_hit(self, limit: Limit) -> bool:
        return self._hits(limit, self.request.option(limit.option))

    def _hits(self, limit: Limit, value: Any) -> bool:
        if limit.format not in (None, self._format) or value is None:
            return False
        is_beside = limit.operator == "+" and self.request.option(limit.value) is not None
        return limit.hits(value, _kind(value), is_beside=is_beside)

    def _refuse(self, limit: Limit, value: Any) -> None:
        """Leave out the option of *limit*, and name it unless its *value* changes nothing."""
        option = OPTIONS.get(limit.option)
        if option is None or not option.is_neutral(value):
            reason = f"{self._model} takes no {limit}"
            if limit.format is not None and self._facts.other_api is not None:
                reason += f" here; {self._facts.other_api} does"
            is_hint = option is not None and option.kind is PlaceKind.HINT
            self._change(limit.option, value, None, reason, refuses=not is_hint)
        if limit.option in _FIELDS:
            empty_value: Any = () if isinstance(value, tuple) else None
            self._alter(**{limit.option: empty_value})
            if limit.option == "tools":
                self._alter(tool_choice=None)
            return
        options = dict(self.request.extra_options)
        options.pop(limit.option, None)
        self._alter(extra_options=FrozenObject(options))


def _takes_budgets(rules: ModelClass) -> bool:
    return any(depth.budget is not None for depth in rules.effort.values())


def _kind(value: Any) -> str | None:
    """Return the kind of a tool choice or of a response format, also of one in a server's own words."""
    word = value.get("type", value) if isinstance(value, dict) else value
    return kind_of(value) or (_KINDS.get(word, word) if isinstance(word, str) else None)


def _word_of(budget: int) -> ReasoningEffort:
    """Return the word with the budget nearest to *budget*, by their ratio."""
    return min(_BUDGETS, key=lambda word: max(budget / _BUDGETS[word], _BUDGETS[word] / budget))


def _merge(body: dict[str, Any], form: Mapping[str, Any]) -> None:
    """Write *form* into *body*. Values that are there stay: the plugin or an option has written them."""
    for name, value in form.items():
        if isinstance(value, Mapping) and isinstance(body.get(name), dict):
            _merge(body[name], value)
        else:
            body.setdefault(name, value)


def folded(name: str) -> str:
    """Return ``generationConfig`` as ``generationconfig``, which ``generation_config`` becomes, too."""
    return name.replace("_", "").lower()


def is_off(value: Any) -> bool:
    """Return whether *value* switches thinking off, wherever a server has a switch, a word or a number for it."""
    return value in _OFF_VALUES


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Return the path and the value of everything in *value* but objects."""
    for name, inner in value.items():
        inner_path = f"{path}.{name}" if path else name
        if isinstance(inner, Mapping):
            yield from _leaves(inner, inner_path)
        else:
            yield inner_path, inner


def value_at(body: Any, path: str) -> Any:
    """Return the value at *path* of *body* in either spelling of its keys, or ``None``."""
    for step in path.split("."):
        entries = body.items() if isinstance(body, Mapping) else ()
        body = next((value for key, value in entries if folded(key) == folded(step)), None)
    return body


def _words_in(forms: Any) -> frozenset[str]:
    """Return the names in *forms*, folded, that say how much a model thinks: all except objects and switches."""
    if not isinstance(forms, Mapping):
        return frozenset()
    own_names = {folded(name) for name, value in forms.items() if not isinstance(value, dict | bool)}
    return frozenset(own_names).union(*map(_words_in, forms.values()))


def _without(
    form: dict[str, Any], provider_options: Mapping[str, Any], words: frozenset[str]
) -> tuple[dict[str, Any], str]:
    """Return *form* without what *provider_options* says otherwise, and the path of that.

    An object of *provider_options* with one of *words* says how much the model thinks, so nothing of the form is
    added.
    """
    values_by_name = {folded(name): value for name, value in provider_options.items()}
    remaining_form: dict[str, Any] = {}
    path = ""
    for name, value in form.items():
        if folded(name) not in values_by_name:
            remaining_form[name] = value
            continue
        provider_value = values_by_name[folded(name)]
        path = name
        if (
            isinstance(value, dict)
            and isinstance(provider_value, dict)
            and words.isdisjoint(map(folded, provider_value))
        ):
            remaining_form[name], inner_path = _without(value, provider_value, words)
            path = f"{name}.{inner_path}"
            if not remaining_form[name]:
                del remaining_form[name]
    return remaining_form, path


def _value_at(body: Any, path: list[str]) -> Any:
    return value_at(body, ".".join(path)) if path else None


def _remove(body: dict[str, Any], path: list[str]) -> None:
    """Remove what is at *path* of *body*, and the objects that are empty without it."""
    first, *inner = path
    for name in [name for name in body if folded(name) == folded(first)]:
        if inner:
            _remove(body[name], inner)
        if not (inner and body[name]):
            del body[name]


# --------------------------------------------------------------------------------- plugins
# What a plugin builds, with its failures typed.


def built(request: ChatRequest, mapper: Mapper) -> HTTPRequest:
    """Return the plugin's HTTP request for *request*."""
    assert mapper.build_request is not None, "the caller has looked"
    try:
        http_request = naming_provider(mapper.build_request, request, mapper.provider)
    except BaseException as error:
        if isinstance(error, CrosswalkError) or is_cancellation(error):
            raise
        raise mapper.failed("build_request", error) from error
    if not isinstance(http_request, HTTPRequest):
        raise mapper.broken(f"build_request gives {type(http_request).__name__}, not HTTPRequest")
    for name, kind in (("path", str), ("body", dict), ("method", str)):
        if not isinstance(value := getattr(http_request, name), kind):
            wrong_type = f"{type(value).__name__}, not {kind.__name__}"
            raise mapper.broken(f"build_request gives an HTTPRequest whose {name} is {wrong_type}")
    return http_request


def naming_provider(work: Callable[[ChatRequest], T], request: ChatRequest, provider: str) -> T:
    """Return the result of *work* for *request*. If it refuses the request, the error names the provider."""
    try:
        return work(request)
    except UnsupportedRequestError as error:
        if error.provider is not None:
            raise
        raise UnsupportedRequestError(str(error), provider=provider, options=error.options) from None

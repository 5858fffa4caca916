"""Facts about models: the options that each class of models accepts, read from TOML files in the plugins' folders.

Each ``[[classes]]`` row has patterns of model names, and rules with their source and date. ``[forms]`` are the parts of a
request body that turn on thinking, ``[[include]]`` takes rows of another provider, and ``[[schemas]]`` are the rules for
JSON Schemas (:mod:`crosswalk.schemas.fitting`). The page "Models" describes all fields.

This module contains no model names. It reads each file once, when the first request is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from fnmatch import translate
from functools import lru_cache
from importlib.resources import files
from operator import gt, le, lt, ne
from pathlib import Path
from typing import Any, Final

import attrs

from crosswalk.errors import ConfigurationError, PluginError
from crosswalk.plugin.registry import Mapper
from crosswalk.request import ChatRequest, ReasoningEffort
from crosswalk.schemas.fitting import SchemaRules, read_rules, rules_in
from crosswalk.wire.options import OPTIONS

USER_FILE_VARIABLE: Final = "CROSSWALK_MODEL_CLASSES"
"""The environment variable with the path of the user's own file of facts."""

_OPTION_NAMES: Final = frozenset(
    {
        *OPTIONS,
        *(field.name for field in attrs.fields(ChatRequest) if field.name not in ("messages", "model")),
        "model",
        "prefill",
    }
)
_LIMIT_PATTERN: Final = re.compile(r"(?:([a-z]+):)?([a-z_]+)(?:(!=|<=|=|<|>|\+)(.+))?")
_COMPARISONS: Final = {"!=": (ne, "other than"), "<": (lt, "below"), "<=": (le, "up to"), ">": (gt, "above")}
_KINDS: Final = {"tool_choice": ("forced", "required"), "response_format": ("json_schema", "json_object")}


class FactsError(ValueError):
    """A file of facts has an invalid entry. The message names it."""


@attrs.frozen
class Limit:
    """An option that a model refuses, always or with some values.

    It is written as ``temperature``, ``temperature!=1``, ``top_p<0.95``, ``temperature<=0``, ``temperature>1``,
    ``tool_choice=forced``, ``response_format=json_schema``, ``top_p+temperature`` (not together), and ``chat:tools`` (only
    in that format). ``chat:model`` means that the model is not on that API, and ``prefill`` that it continues no answer.

    Attributes:
        option: the name of the option.
        format: the format to which the limit applies, or ``None`` for all.
        operator: the comparison that the model refuses: ``!=``, ``<``, ``<=``, ``>``, ``=``, ``+`` (set together with
            another option), or ``""`` for any value.
        value: the number, the kind or the other option for the comparison.
    """

    option: str
    format: str | None = None
    operator: str = ""
    value: Any = None

    @classmethod
    def read(cls, text: str) -> Limit:
        """Return the limit that *text* describes.

        Raises:
            FactsError: it is not a limit.
        """
        match = _LIMIT_PATTERN.fullmatch(text)
        if match is None or match[2] not in _OPTION_NAMES:
            raise FactsError(f"{text!r:.60} names no option")
        format, option, operator, value = match[1], match[2], match[3] or "", match[4]
        if operator in _COMPARISONS:
            try:
                return cls(option, format, operator, float(value))
            except ValueError:
                raise FactsError(f"{text!r:.60} compares with no number") from None
        known_values = _OPTION_NAMES if operator == "+" else _KINDS.get(option, ())
        if operator and value not in known_values:
            raise FactsError(f"{text!r:.60} compares with something unknown")
        return cls(option, format, operator, value)

    def hits(self, value: Any, kind: str | None, *, is_beside: bool) -> bool:
        """Return whether the model refuses the *value* of the option.

        Args:
            value: the value.
            kind: the kind of the value: for a tool choice ``named`` or its word, for a response format its type.
            is_beside: whether the request also sets the other option.
        """
        if self.operator in _COMPARISONS:
            return bool(_COMPARISONS[self.operator][0](value, self.value))
        match self.operator:
            case "+":
                return is_beside
            case "=" if self.value == "forced":
                return kind in ("required", "named")
            case "=":
                return bool(kind == self.value)
        return True

    def __str__(self) -> str:
        if self.operator in _COMPARISONS:
            return f"{self.option} {_COMPARISONS[self.operator][1]} {self.value:g}"
        match self.operator:
            case "+":
                return f"{self.option} beside {self.value}"
            case "=":
                return f"{self.option} {self.value!r}"
        return self.option


@attrs.frozen
class Depth:
    """The model's counterpart of a word of reasoning effort: its own word, a budget in tokens, or both."""

    word: str | None = None
    budget: int | None = None

    @property
    def shown(self) -> str | int | None:
        """The word, or the budget if there is no word."""
        return self.word if self.word is not None else self.budget


@attrs.frozen(kw_only=True, eq=False)
class ModelClass:
    """The rules of a class of models.

    Attributes:
        id: the name of the class.
        models: patterns of the models' names, with the wildcards ``*``, ``?`` and ``[…]``.
        family: patterns of names that are assumed to belong to this class if no other row matches.
        effort: the counterpart of each word of effort that the model accepts.
        form: the name of the form that turns thinking on, or ``None`` if the plugin writes the word of effort itself.
        budget_form: the name of the form for the caller's own budget, for a class with words of effort, or ``None``.
        off: the name of the form that turns thinking off, ``omit`` if it is off by default, or ``None`` if no way is known.
            A word of effort ``none`` turns it off, too.
        thinks: whether the model thinks by default.
        budget: the smallest and the largest budget in tokens, or ``None``.
        budget_is_part_of_max_tokens: whether a budget must be below ``max_tokens``.
        max_tokens: the longest answer in tokens, or ``None`` if unknown.
        default_max_tokens: the value to send if the API requires ``max_tokens``, or ``None`` for the longest answer.
        refuses: the options that the model refuses.
        refuses_thinking, refuses_otherwise: those that it refuses while it thinks, and while it does not.
        ignores, ignores_thinking: those that it accepts without effect, always and while it thinks.
        inputs: the content that its messages may have (``text``, ``image``, ``audio``, ``file``), or empty if unknown.
        needs_stream: whether it requires streaming while it thinks.
        sources: the URLs of the sources.
        checked: the date on which the sources were read.
        confidence: ``high``, ``medium`` or ``low``.
        note: disputed or unknown points.
    """

    id: str
    models: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    effort: Mapping[ReasoningEffort, Depth] = attrs.field(factory=dict)
    form: str | None = None
    budget_form: str | None = None
    off: str | None = None
    thinks: bool = False
    budget: tuple[int, int] | None = None
    budget_is_part_of_max_tokens: bool = False
    max_tokens: int | None = None
    default_max_tokens: int | None = None
    refuses: tuple[Limit, ...] = ()
    refuses_thinking: tuple[Limit, ...] = ()
    refuses_otherwise: tuple[Limit, ...] = ()
    ignores: tuple[Limit, ...] = ()
    ignores_thinking: tuple[Limit, ...] = ()
    inputs: tuple[str, ...] = ()
    needs_stream: bool = False
    sources: tuple[str, ...] = ()
    checked: date | None = None
    confidence: str = "medium"
    note: str = ""


@attrs.frozen
class ModelMatch:
    """The class of a model.

    Attributes:
        model: the model's name in the request.
        rules: the rules of its class.
        is_assumed: whether the model is only assumed to belong to that class.
    """

    model: str
    rules: ModelClass
    is_assumed: bool = False

    @property
    def label(self) -> str:
        """The name of the class, with a note if it is assumed."""
        return f"{self.rules.id} (assumed)" if self.is_assumed else self.rules.id


@attrs.frozen(eq=False)
class Facts:
    """The facts about the models of one provider.

    Attributes:
        layers: groups of classes, the user's first.
        forms: the parts of a request body that turn on thinking, by name.
        needs: the options that the API requires, such as ``max_tokens``.
        other_api: the provider id of the API that accepts options that this one refuses, or ``None``.
        schemas: groups of rules for schemas, the user's first.
    """

    layers: tuple[tuple[ModelClass, ...], ...] = ()
    forms: Mapping[str, Any] = attrs.field(factory=dict)
    needs: tuple[str, ...] = ()
    other_api: str | None = None
    schemas: tuple[tuple[SchemaRules, ...], ...] = ()

    def named(self, name: str) -> ModelClass | None:
        """Return the class with the id *name*, or else the class of the model *name*."""
        for layer in self.layers:
            for rules in layer:
                if rules.id == name:
                    return rules
        match = class_of(self, name)
        return None if match is None else match.rules

    def form(self, name: str, depth: Depth) -> Any:
        """Return the form *name* for *depth*."""
        return _filled(self.forms[name], {"{word}": depth.word, "{budget}": depth.budget})


def _filled(form: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(form, dict):
        return {key: _filled(value, values) for key, value in form.items()}
    return values.get(form, form) if isinstance(form, str) else form


@lru_cache(maxsize=1024)  # bounded, because clients choose the names
def class_of(facts: Facts, model: str) -> ModelMatch | None:
    """Return the class of *model*, or ``None`` if it is unknown. The longest pattern wins."""
    name = _plain_name(model)
    for is_assumed in (False, True):
        for layer in facts.layers:
            fit_lengths = [
                _longest_fit(rules.family if is_assumed else rules.models, name) for rules in layer
            ]
            if longest := max(fit_lengths, default=0):
                return ModelMatch(model, layer[fit_lengths.index(longest)], is_assumed)
    return None


@lru_cache(maxsize=1024)
def schema_rules_of(facts: Facts, model: str) -> SchemaRules | None:
    """Return the rules for a schema that goes to *model*, or ``None`` if none are known. The longest pattern wins."""
    full_name, plain_name = model.strip().lower(), _plain_name(model)
    for layer in facts.schemas:
        fit_lengths = [
            max(
                (
                    _longest_fit([pattern], full_name if "/" in pattern else plain_name)
                    for pattern in rules.models
                ),
                default=1,
            )
            for rules in layer
        ]
        if longest := max(fit_lengths, default=0):
            return layer[fit_lengths.index(longest)]
    return None


_FOLDERS: Final = re.compile(r"(?:[a-z-]+\.)+(?=[a-z])")
"""A region and a vendor before the name, as in ``us.anthropic.``."""


def _plain_name(model: str) -> str:
    """Return the name of *model* in lower case, without region, vendor, folder, ``@version`` and ``:tag``."""
    name = model.strip().lower().removeprefix("ft:").rpartition("/")[2].partition("@")[0].partition(":")[0]
    match = _FOLDERS.match(name)
    return name if match is None else name[match.end() :]


def _longest_fit(patterns: Iterable[str], name: str) -> int:
    fit_lengths = (1 + _literal_length(pattern) for pattern in patterns if _pattern(pattern).match(name))
    return max(fit_lengths, default=0)


@lru_cache(maxsize=2048)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(translate(text.lower()))


def _literal_length(pattern: str) -> int:
    return len(re.sub(r"[*?]", "", re.sub(r"\[[^\]]*\]", "x", pattern)))


# Reading.

_FIELDS: Final = attrs.fields_dict(ModelClass)
_TEXT_FIELDS: Final = ("models", "family", "inputs", "sources")
_LIMIT_FIELDS: Final = ("refuses", "refuses_thinking", "refuses_otherwise", "ignores", "ignores_thinking")
_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("id", "form", "budget_form", "off", "confidence", "note"), str),
    **dict.fromkeys(("thinks", "budget_is_part_of_max_tokens", "needs_stream"), bool),
    **dict.fromkeys(("max_tokens", "default_max_tokens"), int),
    "checked": date,
}


def read_class(row: Mapping[str, Any], base: ModelClass | None = None) -> ModelClass:
    """Return the class in *row*. Rules that the row omits come from *base*.

    Raises:
        FactsError: an entry is invalid.
    """
    fields: dict[str, Any] = {}
    for name, value in row.items():
        if name not in _FIELDS:
            raise FactsError(f"there is no field {name!r:.40}")
        fields[name] = _read_field(name, value)
    if "id" not in fields:
        fields["id"] = next(iter(fields.get("models", ())), "")
    if base is None:
        return ModelClass(**fields)
    return attrs.evolve(base, **{"models": (), "family": (), **fields})


def _read_field(name: str, value: Any) -> Any:
    if name in _TEXT_FIELDS or name in _LIMIT_FIELDS:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise FactsError(f"{name} must be a list of texts")
        return tuple(map(Limit.read, value)) if name in _LIMIT_FIELDS else tuple(value)
    if name == "effort":
        if isinstance(value, dict):
            return {_word(word): _depth(depth) for word, depth in value.items()}
        if not isinstance(value, list):
            raise FactsError("effort must be a list of words, or a table by word")
        return {_word(word): Depth(word=word) for word in value}
    if name == "budget":
        if not (isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value)):
            raise FactsError("budget must be two whole numbers, the least and the most")
        return tuple(value)
    if type(value) is not _TYPES[name]:
        raise FactsError(f"{name} must be {_TYPES[name].__name__}")
    return value


def _word(text: Any) -> ReasoningEffort:
    try:
        return ReasoningEffort(text)
    except ValueError:
        raise FactsError(f"effort has no word {text!r:.40}") from None


def _depth(value: Any) -> Depth:
    if type(value) is str:
        return Depth(word=value)
    if type(value) is int:
        return Depth(budget=value)
    if isinstance(value, dict) and value.keys() == {"word", "budget"}:
        word, budget = value["word"], value["budget"]
        if type(word) is str and type(budget) is int:
            return Depth(word, budget)
    raise FactsError("effort stands for a word, a number of tokens, or both as {word, budget}")


_PARTS: Final = {
    "classes", "forms", "include", "needs", "other_api", "schemas", "signed_calls", "unsigned_calls"
}  # fmt: skip


@lru_cache(maxsize=256)
def read_file(place: str) -> Mapping[str, Any]:
    """Return the content of the file *place*, written as ``package:path``."""
    import tomllib

    package, _, path = place.partition(":")
    content: dict[str, Any] = tomllib.loads(files(package).joinpath(path).read_text("utf-8"))
    if unknown_parts := content.keys() - _PARTS:
        raise FactsError(f"there is no part {min(unknown_parts)!r:.40}")
    return content


def _tables(content: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the tables ``[[part]]``."""
    tables = content.get(part, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise FactsError(f"{part} must be tables: [[{part}]]")
    return tables


def _forms(content: Mapping[str, Any]) -> dict[str, Any]:
    forms = content.get("forms", {})
    if not isinstance(forms, dict) or not all(isinstance(form, dict) for form in forms.values()):
        raise FactsError("forms must be a table of tables")
    return forms


def _rows(content: Mapping[str, Any]) -> tuple[ModelClass, ...]:
    classes = []
    for number, row in enumerate(_tables(content, "classes")):
        try:
            classes.append(read_class(row))
        except FactsError as error:
            raise FactsError(f"classes[{number}]: {error}") from None
    return tuple(classes)


def _for_provider(rules: Iterable[SchemaRules], provider: str) -> tuple[SchemaRules, ...]:
    return tuple(each for each in rules if provider in (each.providers or (provider,)))


def _included(mapper: Mapper, content: Mapping[str, Any]) -> Iterator[ModelClass]:
    """Return the rows that *content* includes from other providers. A missing provider has none."""
    assert mapper.lookup is not None, "a registry has made it"
    for include_table in _tables(content, "include"):
        try:
            place = mapper.lookup(str(include_table.get("provider"))).info.model_classes
        except PluginError:  # blocked, missing or broken
            continue
        for rules in _rows(read_file(place)) if place else ():
            if rules.id in include_table.get("classes", (rules.id,)):
                yield rules


def signs_calls(place: str, model: str) -> bool:
    """Return whether *model* refuses a call without a signature. The longest matching pattern in a file of facts decides.

    Args:
        place: the file, as in :attr:`~crosswalk.plugins.ProviderInfo.model_classes`. ``signed_calls`` are the patterns of
            the models that refuse such a call, ``unsigned_calls`` those of the models that take it.
        model: the model's name.
    """
    name, content = _plain_name(model), read_file(place)
    signed_fit, unsigned_fit = (
        _longest_fit(content.get(part, ()), name) for part in ("signed_calls", "unsigned_calls")
    )
    return signed_fit > unsigned_fit


def shipped_facts(mapper: Mapper) -> Facts:
    """Return the facts in the file of *mapper*'s plugin, and in those that it includes."""
    place = mapper.info.model_classes
    if place is None:
        return Facts()
    try:
        content = read_file(place)
        rows = (*_rows(content), *_included(mapper, content))
        schemas = (_for_provider(rules_in(place), mapper.provider),)
        needs, other_api = tuple(content.get("needs", ())), content.get("other_api")
        facts = Facts((rows,), _forms(content), needs, other_api, schemas)
        _check_forms(facts)
    except (OSError, ValueError, TypeError, ImportError) as error:
        raise PluginError(
            f"provider {mapper.provider!r}: model_classes {place!r:.100}: {error}", plugin=mapper.provider
        ) from None
    return facts


def with_own_facts(facts: Facts, path: str, provider: str) -> Facts:
    """Return *facts* with the rows of the user's file *path* in front. ``""`` means no file."""
    if not path:
        return facts
    import tomllib

    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
        if unknown_parts := content.keys() - {"classes", "forms", "schemas"}:
            raise FactsError(f"there is no part {min(unknown_parts)!r:.40}")
        rows = tuple(_own_rows(_tables(content, "classes"), facts, provider))
        forms = {**facts.forms, **_forms(content)}
        schemas = (_for_provider(read_rules(content.get("schemas", [])), provider), *facts.schemas)
        merged_facts = attrs.evolve(facts, layers=(rows, *facts.layers), forms=forms, schemas=schemas)
        _check_forms(merged_facts)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{USER_FILE_VARIABLE}: {error}", key=USER_FILE_VARIABLE, source="environment"
        ) from None
    return merged_facts


def _own_rows(rows: Iterable[Mapping[str, Any]], facts: Facts, provider: str) -> Iterator[ModelClass]:
    """Return the classes in the user's *rows* for *provider*."""
    for number, row in enumerate(rows):
        fields = dict(row)
        like, providers = fields.pop("like", None), fields.pop("providers", None)
        try:
            if not (isinstance(providers, list) and providers):
                raise FactsError("providers must be a list of provider ids")
            if provider not in providers:
                continue
            base = None if like is None else facts.named(str(like))
            if like is not None and base is None:
                raise FactsError(f"like: {provider} has no class {like!r:.60}")
            yield read_class(fields, base)
        except FactsError as error:
            raise FactsError(f"classes[{number}]: {error}") from None


def _check_forms(facts: Facts) -> None:
    """Check that the form of each class exists, and that a class without a form has only words of effort."""
    for layer in facts.layers:
        for rules in layer:
            for name in (rules.form, rules.budget_form, rules.off):
                if name not in (None, "omit") and name not in facts.forms:
                    raise FactsError(f"{rules.id}: there is no form {name!r:.40}")
            if rules.form is None and any(depth.word not in rules.effort for depth in rules.effort.values()):
                raise FactsError(f"{rules.id}: without a form, effort stands for its own words")

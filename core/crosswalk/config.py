"""Settings from the agent's configuration file and from environment variables, which take precedence."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from crosswalk.plain_errors import ConfigurationError
from crosswalk.text import DEFAULT_CONTENT_LIMIT, set_content_limit, set_log_content

__all__ = ["CONFIG_FILE", "Settings", "apply_settings", "load_settings"]

if TYPE_CHECKING:
    from pathlib import Path  # it loads more than settings need

CONFIG_FILE: Final = ".agent/config.yml"
"""The path of the file, relative to the working directory. It need not exist."""


@attrs.frozen
class Settings:
    """Settings that hold for all programs of a user.

    Each value comes from an environment variable, or else from ``.agent/config.yml``. An empty variable sets nothing.

    Attributes:
        default_provider: the provider id for payloads that do not show theirs, or ``None`` for none.
            ``model.default_provider``, ``CROSSWALK_DEFAULT_PROVIDER``.
        timeout_seconds: the longest wait for a whole answer, and in a stream for the next byte, or ``None`` for the
            service's default.
            ``model.timeout_seconds``, ``CROSSWALK_TIMEOUT_SECONDS``.
        include_response_content: whether logs may contain the text of answers.
            ``logging.include_response_content``, ``CROSSWALK_INCLUDE_RESPONSE_CONTENT``.
        max_content_length: the number of characters of content that a ``repr``, ``str`` or log field may show.
            ``logging.max_content_length``, ``CROSSWALK_MAX_CONTENT_LENGTH``.
        disabled_plugins: provider ids whose code is never imported, from ``CROSSWALK_DISABLED_PLUGINS``
            alone, separated by commas; the registry reads that variable itself.
        default_model: the model of the default provider if the program names none, or ``None`` for none.
            ``model.default_model``, ``CROSSWALK_DEFAULT_MODEL``.
    """

    default_provider: str | None = None
    timeout_seconds: float | None = None
    include_response_content: bool = False
    max_content_length: int = DEFAULT_CONTENT_LIMIT
    disabled_plugins: frozenset[str] = frozenset()
    default_model: str | None = None


# ----------------------------------------------------------------------------- requirements
# What the options of services, agents and parsers have to be.


@attrs.frozen
class Requirement:
    """What the value of an option has to be. It is the validator of an attrs field, or checks an argument.

    Attributes:
        words: the allowed values, in words.
        fits: whether a value is allowed.
    """

    words: str
    fits: Callable[[Any], bool]

    def check(self, name: str, value: object) -> None:
        """Check the *value* of the option *name*.

        Raises:
            ConfigurationError: it is not allowed.
        """
        if not self.fits(value):
            raise ConfigurationError(f"{name} must be {self.words}", key=name)

    def __call__(self, _: object, attribute: attrs.Attribute[Any], value: object) -> None:
        self.check(attribute.name, value)

    def or_none(self) -> Requirement:
        """The same, or ``None``."""
        return Requirement(f"{self.words}, or None", lambda value: value is None or self.fits(value))


COUNT: Final = Requirement("a whole number of at least 1", lambda value: type(value) is int and value >= 1)
WAIT: Final = Requirement(
    "seconds from 0 to 1e9",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e9,
)
TIME_LIMIT: Final = Requirement("seconds above 0, at most 1e9", lambda value: WAIT.fits(value) and value > 0)
COUNT_OR_NONE: Final = COUNT.or_none()
TIME_LIMIT_OR_NONE: Final = TIME_LIMIT.or_none()


def check_type(option: str, value: object, kind: Any) -> None:
    """Raise unless *value* is ``None`` or an instance of *kind*.

    Args:
        option: the name of the option, for the error.
        value: its value.
        kind: a class, or ``Callable``.

    Raises:
        ConfigurationError: *value* has another type.
    """
    if value is not None and not isinstance(value, kind):
        expected_name = "a function" if kind is Callable else kind.__name__
        raise ConfigurationError(f"{option} must be {expected_name}, not {type(value).__name__}", key=option)


# --------------------------------------------------------------------------------- settings
# The settings of a user, from a file and from the environment.


class _Kind(NamedTuple):
    """A type of setting.

    Attributes:
        expected: the allowed values, in words.
        fits: whether a value is allowed.
        from_text: reads an environment variable. ``ValueError`` or ``None`` means that it cannot.
        clean: turns an allowed value into the one that ``Settings`` keeps.
    """

    expected: str
    fits: Callable[[Any], bool]
    from_text: Callable[[str], Any]
    clean: Callable[[Any], Any]


_BOOLEAN_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_BOOLEAN_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def _switch(text: str) -> bool | None:
    return _BOOLEAN_WORDS.get(text.lower())


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


_PROVIDER_ID = _Kind("a provider id", lambda v: type(v) is str and bool(v.strip()), str, str.strip)
_SECONDS = _Kind("a number above 0", TIME_LIMIT.fits, float, float)
_SWITCH = _Kind("true or false", lambda v: type(v) is bool, _switch, bool)
_LENGTH = _Kind("a whole number of at least 0", lambda v: type(v) is int and v >= 0, int, int)
_MODEL = _Kind("the name of a model", _PROVIDER_ID.fits, str, str.strip)
_PROVIDER_IDS = _Kind("provider ids, separated by commas", lambda _: True, _names, frozenset)

_FILE_KINDS = {
    "model": {"default_provider": _PROVIDER_ID, "default_model": _MODEL, "timeout_seconds": _SECONDS},
    "logging": {"include_response_content": _SWITCH, "max_content_length": _LENGTH},
}
_VARIABLE_KINDS = {
    f"CROSSWALK_{name.upper()}": (name, kind)
    for name, kind in {
        **_FILE_KINDS["model"],
        **_FILE_KINDS["logging"],
        "disabled_plugins": _PROVIDER_IDS,
    }.items()
}


def load_settings(path: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings in the file *path*. Those in *environ* take precedence.

    The file belongs to the agent, so sections other than ``model`` and ``logging`` are ignored, and so are variables of
    other names, which a plugin may use.

    Args:
        path: the YAML file, or ``None`` for :data:`CONFIG_FILE`, which need not exist.
        environ: environment variables, or ``None`` for the process's own.

    Raises:
        ConfigurationError: the file cannot be read, a key is unknown, or a value is wrong. The error names the key and the
            file, or ``"environment"``.
    """
    values = _from_file(CONFIG_FILE if path is None else str(path), required=path is not None)
    values.update(_from_environment(os.environ if environ is None else environ))
    return Settings(**values)


def apply_settings(settings: Settings) -> None:
    """Apply *settings* to this process: how much content a ``repr`` shows, and whether logs contain any."""
    set_content_limit(settings.max_content_length)
    set_log_content(settings.include_response_content)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, (name, kind) in _VARIABLE_KINDS.items():
        text = environ.get(variable, "").strip()
        if text:
            try:
                value = kind.from_text(text)
            except ValueError:
                value = None
            values[name] = _checked(value, kind, variable, "environment")
    return values


def _from_file(source: str, *, required: bool) -> dict[str, Any]:
    try:
        with open(source, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        if required:
            raise ConfigurationError(f"{source}: no such file", source=source) from None
        return {}
    except OSError as error:
        raise ConfigurationError(f"{source}: {error.strerror}", source=source) from None
    document = _parsed(data, source)
    values: dict[str, Any] = {}
    for section, kinds in _FILE_KINDS.items():
        section_values = document.get(section)
        if section_values is None:
            continue
        if not isinstance(section_values, dict):
            raise ConfigurationError(f"{source}: {section}: expected a mapping", key=section, source=source)
        for name, value in section_values.items():
            key = f"{section}.{name}"
            kind = kinds.get(name)
            if kind is None:
                known = ", ".join(f"{section}.{known}" for known in kinds)
                raise ConfigurationError(
                    f"{source}: unknown key {key!r}; known: {known}", key=key, source=source
                )
            if value is not None:
                values[name] = _checked(value, kind, key, source)
    return values


def _parsed(data: bytes, source: str) -> dict[Any, Any]:
    import yaml  # only where a file exists

    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The parser's own message would quote the file, which may contain secrets of the agent.
        mark = getattr(error, "problem_mark", None)
        line_phrase = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"{source}{line_phrase}: not YAML", source=source) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"{source}: expected a mapping of sections", source=source)
    return document


def _checked(value: Any, kind: _Kind, key: str, source: str) -> Any:
    """*value* if it is of *kind*. The error does not quote it, since it may be a secret in the wrong place."""
    if not kind.fits(value):
        raise ConfigurationError(f"{source}: {key}: expected {kind.expected}", key=key, source=source)
    return kind.clean(value)

"""Several versions of one schema: the version of a document, and the conversions between versions.

An added optional field is a new minor version, a removed or renamed one a new major.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs

from crosswalk.structured.decode import Unread
from crosswalk.structured.reason import (
    MigrationError,
    ReasonCode,
    SchemaDefinitionError,
    UnknownSchemaVersionError,
)
from crosswalk.structured.result import Candidate, Violation
from crosswalk.structured.schema import Invariant, Schema
from crosswalk.text import clean_message, json_type_name

T = TypeVar("T")

_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")

_LIKE_A_VERSION: Final = re.compile(r"v?[0-9.]{1,16}", re.ASCII)

Migration = Callable[[Any], Any]


def _parts(version: str) -> tuple[int, int] | None:
    result = _VERSION.fullmatch(version)
    return (int(result[1]), int(result[2])) if result else None


@attrs.frozen
class _Step:
    """A registered version, and the conversions from the one before it and back."""

    version: str
    schema: Schema[Any]
    upgrade: Migration | None
    downgrade: Migration | None


class SchemaVersions(Generic[T]):
    """A registry of the versions of one schema. Register them from the oldest on, then parse.

    Args:
        key: the key of the document that names its version.
        default: the version of a document that names none, or ``None`` for the first that is registered.
    """

    def __init__(self, key: str = "schema_version", *, default: str | None = None) -> None:
        self.key = key
        self._default = default
        self._steps: dict[str, _Step] = {}

    def register(
        self,
        version: str,
        cls: type[Any],
        *,
        invariants: tuple[Invariant[Any], ...] = (),
        upgrade: Migration | None = None,
        downgrade: Migration | None = None,
    ) -> SchemaVersions[T]:
        """Add the next version, later than all before it.

        Args:
            version: ``MAJOR.MINOR``.
            cls: the attrs class of its documents.
            invariants: the rules that its values must satisfy.
            upgrade: makes a value of this version from one of the version before. Required from the second version on.
            downgrade: makes a value of the version before from one of this. Raises :class:`MigrationError` that names
                what would be lost. ``None`` if there is no way back.

        Returns:
            The registry itself, so that calls can be chained.

        Raises:
            SchemaDefinitionError: the version is malformed or not later than the last one, or has no ``upgrade``.
        """
        parts = _parts(version)
        if parts is None:
            raise SchemaDefinitionError(
                f"a schema version is MAJOR.MINOR, not {clean_message(version, 40)!r}"
            )
        last = next(reversed(self._steps), None)
        if last is not None and parts <= (_parts(last) or parts):
            raise SchemaDefinitionError(f"schema version {version} is registered after {last}")
        if (last is None) is not (upgrade is None):
            raise SchemaDefinitionError(
                f"schema version {version} has no upgrade from {last}"
                if last
                else f"schema version {version} is the first: there is nothing to upgrade from"
            )
        self._steps[version] = _Step(version, Schema(cls, invariants), upgrade, downgrade)
        return self

    @property
    def supported(self) -> frozenset[str]:
        """The registered versions."""
        return frozenset(self._steps)

    @property
    def names(self) -> frozenset[str]:
        """The keys of every object in every version, as :func:`folded_key` writes them."""
        return frozenset[str]().union(*(step.schema.names for step in self._steps.values()))

    @property
    def has_decimal(self) -> bool:
        """Whether a version holds a ``Decimal``."""
        return any(step.schema.has_decimal for step in self._steps.values())

    @property
    def default(self) -> str:
        """The version of a document that names none.

        Raises:
            SchemaDefinitionError: no version is registered.
        """
        if not self._steps:
            raise SchemaDefinitionError("no schema version is registered")
        return self._default or next(iter(self._steps))

    def schema(self, version: str) -> Schema[Any]:
        """The schema of a registered version.

        Raises:
            UnknownSchemaVersionError: it is not registered.
        """
        step = self._steps.get(version)
        if step is None:
            known = ", ".join(self._steps)
            raise UnknownSchemaVersionError(
                f"unknown schema version {clean_message(version, 40)!r}; known are {known}",
                version=version,
                known=tuple(self._steps),
            )
        return step.schema

    def read_as(self, version: str) -> str | None:
        """Return the registered version that documents of *version* are read as.

        A registered version is read as itself. Any other minor is read as the newest minor of its major, because additions
        of a minor are optional. ``None`` if the major is not known, or *version* is not ``MAJOR.MINOR``, such as ``1``
        or ``1.0.0``.
        """
        if version in self._steps:
            return version
        parts = _parts(version)
        minors = [each for each in self._steps if parts and each.startswith(f"{parts[0]}.")]
        return minors[-1] if minors else None

    def read(self, data: Any) -> Candidate[Any]:
        """Return the value of decoded JSON in its own version, its violations, and the version that it names."""
        if type(data) is Unread:
            return self._steps[self.default].schema.read(data)
        named = data.get(self.key, self.default) if type(data) is dict else self.default
        if type(named) is not str:
            message = f"expected string, got {json_type_name(named)}"
            return Candidate(None, (Violation(message, f"$.{self.key}", ReasonCode.SCHEMA_TYPE_ERROR),))
        step = self._steps.get(named)
        if step is not None:
            return step.schema.read(data)._replace(version=named)
        version = self.read_as(named)
        if version is None:
            known = ", ".join(self._steps)
            raw = f" {named!r}" if _LIKE_A_VERSION.fullmatch(named) else ""
            message = f"unknown schema version{raw}, known are {known}"
            code = ReasonCode.SCHEMA_UNKNOWN_VERSION
            return Candidate(None, (Violation(message, f"$.{self.key}", code),), named)
        return self._steps[version].schema.read({**data, self.key: version})._replace(version=named)

    def version_of(self, value: Any) -> str:
        """Return the version of a value: the one that it names, or the one that its class is registered for.

        Raises:
            UnknownSchemaVersionError: neither is registered.
        """
        raw = getattr(value, self.key, None)
        if isinstance(raw, str) and raw in self._steps:
            return raw
        for step in self._steps.values():
            if type(value) is step.schema.cls:
                return step.version
        raise UnknownSchemaVersionError(
            f"no schema version has {type(value).__name__}", version=str(raw)[:40]
        )

    def migrate(self, value: Any, target: str) -> Any:
        """Return *value* in another version, version by version: up always, down if nothing is lost.

        Raises:
            UnknownSchemaVersionError: *target*, or the version of *value*, is not registered.
            MigrationError: the way down would lose something, or there is none.
        """
        self.schema(target)
        source = self.version_of(value)
        versions = list(self._steps)
        start, end = versions.index(source), versions.index(target)
        steps = list(self._steps.values())
        for step in steps[start + 1 : end + 1]:
            value = self._moved(value, step.schema.cls, step.upgrade, source, target)
        for at in range(start, end, -1):
            value = self._moved(value, steps[at - 1].schema.cls, steps[at].downgrade, source, target)
        return value

    def _moved(self, value: Any, cls: type, move: Migration | None, source: str, target: str) -> Any:
        if move is None:
            raise MigrationError(f"no way from {source} to {target}", source=source, target=target)
        where = f"from {source} to {target}"
        try:
            moved = move(value)
        except MigrationError as error:
            raise MigrationError(
                f"{where}: {clean_message(str(error), 200)}", source=source, target=target
            ) from error
        except Exception as error:  # a user's function: its message may quote the value
            raise MigrationError(f"{where}: {type(error).__name__}", source=source, target=target) from error
        if not isinstance(moved, cls):
            message = f"{where}: the migration made {type(moved).__name__}, not {cls.__name__}"
            raise MigrationError(message, source=source, target=target)
        return moved

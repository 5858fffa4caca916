"""Where code and commands run: containers, their network, the skills in them."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record


@record
class UnknownEnvironment(Unknown, Record):
    """An environment, network policy or skill of an unregistered type."""

    family: ClassVar[str] = "environment"
    type: str | None = None


@record
class ContainerNetworkPolicyDomainSecret(Record):
    """A secret that requests to a domain carry.

    Attributes:
        domain: the domain.
        name: its name for code in the container.
        value: the secret.
    """

    domain: str
    name: str
    value: str

    def __repr__(self) -> str:
        return f"ContainerNetworkPolicyDomainSecret(domain={self.domain!r}, name={self.name!r})"


@record
class ContainerNetworkPolicyDisabled(Record):
    """No network access."""

    type: Literal["disabled"] = "disabled"


@record
class ContainerNetworkPolicyAllowlist(Record):
    """Access to some domains only.

    Attributes:
        allowed_domains: the domains.
        domain_secrets: the secrets for them.
    """

    type: Literal["allowlist"] = "allowlist"
    allowed_domains: tuple[str, ...]
    domain_secrets: tuple[ContainerNetworkPolicyDomainSecret, ...] | None = None


NetworkPolicy: TypeAlias = (
    ContainerNetworkPolicyDisabled | ContainerNetworkPolicyAllowlist | UnknownEnvironment
)
"""The network access of a container."""


@record
class SkillReference(Record):
    """An uploaded skill.

    Attributes:
        skill_id: its id.
        version: a number, or ``latest``.
    """

    type: Literal["skill_reference"] = "skill_reference"
    skill_id: str
    version: str | None = None


@record
class InlineSkillSource(Record):
    """The files of a skill.

    Attributes:
        media_type: ``application/zip``.
        data: the archive in base64.
    """

    type: Literal["base64"] = "base64"
    media_type: str
    data: str


@record
class InlineSkill(Record):
    """A skill sent with the request."""

    type: Literal["inline"] = "inline"
    name: str
    description: str
    source: InlineSkillSource


Skill: TypeAlias = SkillReference | InlineSkill | UnknownEnvironment
"""A skill in a container."""


@record
class LocalSkill(Record):
    """A skill on the caller's machine.

    Attributes:
        name: its name.
        description: its purpose.
        path: its folder.
    """

    name: str
    description: str
    path: str


@record
class CodeInterpreterContainer(Record):
    """A new container for the code interpreter.

    Attributes:
        file_ids: files to put into it.
        memory_limit: such as ``4g``.
        network_policy: its network access.
    """

    type: Literal["auto"] = "auto"
    file_ids: tuple[str, ...] | None = None
    memory_limit: str | None = None
    network_policy: NetworkPolicy | None = None


@record
class ContainerAuto(Record):
    """A new container for the shell, see :class:`CodeInterpreterContainer`."""

    type: Literal["container_auto"] = "container_auto"
    file_ids: tuple[str, ...] | None = None
    memory_limit: str | None = None
    network_policy: NetworkPolicy | None = None
    skills: tuple[Skill, ...] | None = None


@record
class ContainerReference(Record):
    """A container that exists."""

    type: Literal["container_reference"] = "container_reference"
    container_id: str


@record
class LocalEnvironment(Record):
    """The caller's machine."""

    type: Literal["local"] = "local"
    skills: tuple[LocalSkill, ...] | None = None


ShellEnvironment: TypeAlias = ContainerAuto | ContainerReference | LocalEnvironment | UnknownEnvironment
"""Where shell commands run."""

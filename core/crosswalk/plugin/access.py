"""How a provider's server is reached, as far as its plugin can say; for the service."""

from __future__ import annotations

import attrs

__all__ = ["Access"]


@attrs.frozen(kw_only=True)
class Access:
    """Where a provider's server is and how it wants to be shown a key; what a user gives counts more.

    Attributes:
        base_url: where it is by default: scheme, host, and what every path begins with.
        base_url_variables: the environment variables that may name another one, the strongest first.
        api_key_variables: those that may hold the API key. A service on the internet (``https``) needs one.
        api_key_header: the header that carries the key.
        api_key_scheme: the word before the key in it; ``None`` for the key alone.
    """

    base_url: str
    base_url_variables: tuple[str, ...] = ()
    api_key_variables: tuple[str, ...] = ()
    api_key_header: str = "Authorization"
    api_key_scheme: str | None = "Bearer"

    @classmethod
    def by_name(cls, base_url: str, name: str) -> Access:
        """A server at *base_url* whose variables begin with *name*: ``NAME_BASE_URL`` and ``NAME_API_KEY``."""
        variables, keys = (f"{name}_BASE_URL",), (f"{name}_API_KEY",)
        return cls(base_url=base_url, base_url_variables=variables, api_key_variables=keys)

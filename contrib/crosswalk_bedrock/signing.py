"""The address of Bedrock, and signing by botocore with the usual environment, files and roles of AWS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crosswalk.plugins import ConfigurationError, Sign, Signed

_REGION = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


def base_url() -> str:
    """The address of Bedrock in the region that the environment or the profile names.

    Raises:
        ConfigurationError: they name none, or botocore is missing.
    """
    region = _session().get_config_variable("region")
    if not region:
        raise ConfigurationError(
            "bedrock: no region; give base_url=, or set AWS_REGION or AWS_DEFAULT_REGION", key="base_url"
        )
    return f"https://bedrock-runtime.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def signer(address: str) -> Sign:
    """Return the signer of requests to *address*, with the credentials that botocore finds and renews.

    Raises:
        ConfigurationError: credentials, region or botocore are missing.
    """
    session = _session()

    from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    result = _REGION.search(address)
    region = result.group(1) if result else session.get_config_variable("region")
    credentials = session.get_credentials()
    if credentials is None or not region:
        missing = "credentials" if region else "region"
        raise ConfigurationError(
            f"bedrock: botocore finds no {missing}; set AWS_BEARER_TOKEN_BEDROCK, or what the AWS CLI needs",
            key="api_key",
        )

    def sign(method: str, url: str, headers: Mapping[str, str], content: bytes) -> Signed:
        payload = {name: value for name, value in headers.items() if name.lower() == "content-type"}
        request = AWSRequest(method=method, url=url, headers=payload, data=content)
        try:
            frozen = credentials.get_frozen_credentials()
            SigV4Auth(frozen, "bedrock", region).add_auth(request)
        except BotoCoreError as error:
            raise ConfigurationError(f"bedrock: not signed ({type(error).__name__})", key="api_key") from None
        new = {name: value for name, value in request.headers.items() if name not in payload}
        secrets = (
            frozen.access_key,
            frozen.secret_key,
            frozen.token,
            new["Authorization"].rpartition("=")[2],
        )
        return Signed(new, tuple(filter(None, secrets)))

    return sign


def _session() -> Any:
    try:
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigurationError(
            "requests to Bedrock take botocore: pip install 'crosswalk-llm[bedrock]'"
        ) from None
    # botocore does not read the variables that Lambda and containers set.
    return Session({"region": ("region", ["AWS_REGION", "AWS_DEFAULT_REGION"], None, None)})

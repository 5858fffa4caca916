"""Crosswalk's promises, checked on the captures. If a test fails, see the README."""

from crosswalk.testing import ProviderConformance


class TestKelp(ProviderConformance):
    """Kelp keeps all of them."""

    provider = "kelp"
    captures = "captures"

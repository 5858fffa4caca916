"""Crosswalk's promises, checked on the captures. If a test fails, see the README."""

from crosswalk.testing import ProviderConformance


class TestTern(ProviderConformance):
    """Tern keeps all of them."""

    provider = "tern"
    captures = "captures"

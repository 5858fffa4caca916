"""What Crosswalk promises, checked on the captures; see the README for what to do when a test fails."""

from crosswalk.testing import ProviderConformance


class TestKelp(ProviderConformance):
    """Kelp keeps them all."""

    provider = "kelp"
    captures = "captures"

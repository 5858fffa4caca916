"""``python -m crosswalk_serve > docs/serve-configuration.md``: the gateway's file as a page of Markdown."""

from __future__ import annotations

from crosswalk_serve.document import configuration_page

print(configuration_page(), end="")

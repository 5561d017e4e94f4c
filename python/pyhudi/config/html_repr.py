"""Base class of results that notebooks display; the HTML itself is made elsewhere."""

from __future__ import annotations

from importlib import import_module


class HtmlRepr:
    """A result with HTML for notebooks, which `api/display` makes.

    That package is above all packages with results, so it is imported by name when it is needed.
    """

    def _repr_html_(self) -> str:
        html: str = import_module("pyhudi.api.display.result_html").result_html(self)
        return html

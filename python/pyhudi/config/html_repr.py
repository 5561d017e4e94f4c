"""What results have in common that notebooks show: that there is HTML of them, not how it looks."""

from __future__ import annotations

from importlib import import_module


class HtmlRepr:
    """A result with HTML for notebooks, which `api/display` makes.

    That stands above all that gives results, so it is found by name, when somebody looks.
    """

    def _repr_html_(self) -> str:
        html: str = import_module("pyhudi.api.display.result_html").result_html(self)
        return html

"""Checks of HTML pages and fragments without a browser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"br", "meta", "input"}
_ELSEWHERE = re.compile(r"https?:|//\w|url\(|@import|<(?:link|iframe|object|embed|img)\b")


@dataclass
class Element:
    """One element with what stands in it."""

    name: str
    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, at any depth."""
        return "".join(self.parts)

    def has_class(self, name: str) -> bool:
        """Whether it is of a class."""
        return name in self.attributes.get("class", "").split()


class Page(HTMLParser):
    """What a text of HTML consists of. Fails where elements do not close in turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[element.name for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{tag} was never opened"
        assert self._open.pop().name == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    def all(self, name: str, class_: str | None = None) -> list[Element]:
        """Elements of a name, and of a class."""
        found = [element for element in self.elements if element.name == name]
        return [one for one in found if class_ is None or one.has_class(class_)]

    @property
    def figures(self) -> dict[str, int]:
        """The figures of a report."""
        told = [one.attributes for one in self.elements if "data-figure" in one.attributes]
        return {one["data-figure"]: int(one["data-value"]) for one in told}

    @property
    def rows(self) -> list[list[str]]:
        """The cells of each row of each table."""
        found: list[list[str]] = []
        for element in self.elements:
            if element.name == "tr":
                found.append([])
            elif element.name in ("td", "th") and found:
                found[-1].append(element.text)
        return found

    @property
    def elsewhere(self) -> list[str]:
        """What would make a browser ask for something that is not on the page."""
        told = [one for one in self.elements if {"src", "href", "srcset"} & one.attributes.keys()]
        return [one.name for one in told] + _ELSEWHERE.findall(self.source)

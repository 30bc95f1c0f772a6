# SPDX-License-Identifier: GPL-2.0-or-later
"""A strict HTML reader for tests: errors that browsers forgive fail here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "br", "hr", "img", "link", "input", "base", "col", "source", "wbr"})


@dataclass
class Element:
    """An element; `parts` are its texts and elements in order."""

    tag: str
    attributes: dict[str, str]
    parts: list[Element | str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Return this element and all below it, in document order."""
        yield self
        for part in self.parts:
            if isinstance(part, Element):
                yield from part.walk()

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a tag that have these attribute values (`class_` for class)."""
        conditions = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            element
            for element in self.walk()
            if element.tag == tag and conditions.items() <= element.attributes.items()
        ]

    @property
    def text(self) -> str:
        """All text below, joined."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def table(self) -> list[dict[str, str]]:
        """Return the rows of a table as column heading and text."""
        headings = [cell.text for cell in self.all("th")]
        rows = [[cell.text for cell in row.all("td")] for row in self.all("tr")]
        return [dict(zip(headings, row, strict=True)) for row in rows if row]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            raise ValueError(f"<{tag}> at {self.getpos()} repeats an attribute")
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].parts.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            raise ValueError(f"</{tag}> at {self.getpos()} closes <{self.open[-1].tag}>")
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def parse(text: str) -> Element:
    """Read a document. Raises ValueError where tags do not nest or an attribute is repeated."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    if len(reader.open) != 1:
        raise ValueError(f"<{reader.open[-1].tag}> is never closed")
    return reader.root

# SPDX-License-Identifier: GPL-2.0-or-later
"""MkDocs' hooks: pages that are written for GitHub, on a site that needs no network."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) +")
_SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme would load for a search in files; worker.js does the same."""


_BOOSTS = {
    "docs/questions.md": 4.0,
    "docs/howto/": 2.0,
    "docs/man/": 1.0,
    "docs/sample-report/": 0.1,
    "docs/studies/": 0.1,
    "docs/": 0.5,
    "kernel/": 0.5,
}
"""By how a page's name starts: how much a search prefers what people do to what the project is."""


def on_page_markdown(markdown: str, *, page: Any, files: Any, **_: object) -> str:  # noqa: ANN401
    """Adapt a page's links and lists, and its rank in search results."""
    page.meta["search"] = {"boost": boost(page.file.src_uri)}
    return indented_lists(linked(markdown, page.file.src_uri, files.get_file_from_path))


def boost(name: str) -> float:
    """Return the factor by which a search prefers a page."""
    return next((factor for start, factor in _BOOSTS.items() if name.startswith(start)), 0.1)


def linked(markdown: str, name: str, known: Any) -> str:  # noqa: ANN401 - MkDocs' lookup
    """Let a folder lead to its README; sources and captures are not on the site: name them."""
    here = posixpath.dirname(name)

    def replace(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(here, target))
        if ":" in target or target.endswith(".md") or known(path):
            return link[0]
        if known(f"{path}/README.md"):
            return f"[{text}]({target.rstrip('/')}/README.md{anchor})"
        return text

    return _LINK.sub(replace, markdown)


def indented_lists(markdown: str) -> str:
    """Indent what belongs to a list's item by four columns, which Python's Markdown wants."""
    lines, blank, offset, fenced = [], False, 0, False
    for line in markdown.split("\n"):
        item = None if fenced else _ITEM.match(line)
        if item:
            offset = len(item[0])
        elif blank and line[:1].strip():
            offset = 0  # a paragraph after the list
        if not offset and line.startswith("```"):
            fenced = not fenced
        inside = offset and line.startswith(" " * offset)
        lines.append("    " + line[offset:] if inside else line)
        blank = not line.strip()
    return "\n".join(lines)


def on_post_page(output: str, *, page: Any, **_: object) -> str:  # noqa: ANN401
    """Take the search's helper from the site."""
    here = posixpath.dirname(page.url)
    return output.replace(_SHIM, posixpath.relpath("docs/site/worker.js", here or "."))


def on_post_template(output_content: str, **_: object) -> str:
    """As `on_post_page`, for the page that a wrong address gets."""
    return output_content.replace(_SHIM, "docs/site/worker.js")

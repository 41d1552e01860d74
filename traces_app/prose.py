"""Model text as HTML: Markdown, then an allow-list; nothing is ever loaded from it.

Two fences stand behind each other. The Markdown renderer passes no raw HTML, turns
images into links and writes every address out; nh3 then keeps only the elements and
attributes named here. Text without any mark-up takes a short way round both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

ELEMENTS = {
    *("a", "blockquote", "br", "code", "del", "em", "h4", "hr", "li", "ol", "p"),
    *("pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {
    "a": {"href"},
    "ol": {"start"},
    "pre": {"data-language"},
    "span": {"data-address"},
}
SCHEMES = {"http", "https", "mailto"}
LONGEST_CACHED = 20_000  # characters; longer texts are rendered anew each time
LONGEST_RENDERED = 200_000  # beyond it Markdown costs too much: shown as plain text
_MARKUP = re.compile(r"[*_`#\[\]<>|~!\\]|^\s*(?:[-+]|\d+[.)])\s|^\s{4}|^[-=]{2,}", re.M)


class SafeMarkup(str):
    """HTML that came through the allow-list; templates print it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


class _Renderer(RendererHTML):
    """The Markdown renderer with links that show where they lead."""

    def link_close(
        self, tokens: Sequence[Token], idx: int, options: Any, env: Any
    ) -> str:
        """End a link and write its address out unless the text is the address."""
        depth, start = 1, idx
        while depth:
            start -= 1
            depth += {"link_close": 1, "link_open": -1}.get(tokens[start].type, 0)
        address = str(tokens[start].attrGet("href") or "")
        text = "".join(token.content for token in tokens[start + 1 : idx])
        if text.strip() == address:
            return "</a>"
        return f"</a> <span data-address>{escape(address)}</span>"

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Name an image instead of loading it."""
        token = tokens[idx]
        address = str(token.attrGet("src") or "")
        words = f"image: {token.content or 'untitled'}"
        return f"{escape(words)} <span data-address>{escape(address)}</span>"

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Keep the language of a code block as an attribute."""
        token = tokens[idx]
        language = escape((token.info.split() or [""])[0][:40])
        mark = f' data-language="{language}"' if language else ""
        return f"<pre{mark}><code>{escape(token.content)}</code></pre>\n"

    def code_block(
        self, tokens: Sequence[Token], idx: int, options: Any, env: Any
    ) -> str:
        """Show an indented block like a fenced one."""
        return f"<pre><code>{escape(tokens[idx].content)}</code></pre>\n"


def _level_headings(state: Any) -> None:
    # The page's own headings end at h3; those of a text must not stand above them.
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "h4"


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt(
        "commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer
    )
    markdown.enable(["table", "strikethrough"])
    markdown.core.ruler.push("level_headings", _level_headings)
    return markdown


_MARKDOWN = _markdown()


def to_html(text: str) -> SafeMarkup:
    """Return the text as HTML that is safe to print."""
    if len(text) > LONGEST_CACHED:
        return _render(text)
    return _render_cached(text)


@lru_cache(maxsize=2048)
def _render_cached(text: str) -> SafeMarkup:
    return _render(text)


def _render(text: str) -> SafeMarkup:
    if len(text) > LONGEST_RENDERED or not _MARKUP.search(text):
        return _plain(text)
    cleaned = nh3.clean(
        _MARKDOWN.render(text),
        tags=ELEMENTS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return SafeMarkup(cleaned)


def _plain(text: str) -> SafeMarkup:
    parts = re.split(r"\n{2,}", text.strip("\n"))
    return SafeMarkup("".join(f"<p>{escape(part)}</p>" for part in parts))

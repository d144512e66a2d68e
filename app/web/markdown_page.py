"""Renders Markdown as a page: headings with anchors, a table of contents, and nothing that runs.

The anchor of a heading is made from its words, or follows them: `### Unknown site {#problem-unknown-site}`.
"""

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from string import Template
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

WITH_ANCHOR = re.compile(r"(.*?) \{#([a-z0-9-]+)\}")
NOT_IN_ANCHOR = re.compile(r"[^a-z0-9]+")
BREAK_AFTER = re.compile(r"([_/]+)(?=\w)")
CHAPTER = "h2"


def render(markdown: str, title: str, root: str = "./") -> str:
    """`root` is the relative path from this page to the first page, so that links work behind any prefix."""
    parser = _parser()
    tokens = parser.parse(markdown)
    body = parser.renderer.render(tokens, parser.options, {})
    template = Template((files("app.web") / "static" / "markdown_page.html").read_text("utf-8"))
    return template.substitute(title=escape(title), root=root, contents=_contents(tokens), body=body)


def _parser() -> MarkdownIt:
    """Without raw HTML and images, because the text of a card comes from outside."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.core.ruler.before("inline", "anchors", _add_anchors)
    parser.add_render_rule("code_inline", _code)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    return parser


def _add_anchors(state: StateCore) -> None:
    for opening, words in pairwise(state.tokens):
        if opening.type == "heading_open":
            named = WITH_ANCHOR.fullmatch(words.content)
            words.content, name = named.groups() if named else (words.content, words.content.lower())
            opening.attrSet("id", NOT_IN_ANCHOR.sub("-", name).strip("-"))


def _contents(tokens: Sequence[Token]) -> str:
    chapters = [
        (opening.attrs["id"], words.content)
        for opening, words in pairwise(tokens)
        if opening.type == "heading_open" and opening.tag == CHAPTER
    ]
    return "\n".join(f'<li><a href="#{name}">{escape(words)}</a></li>' for name, words in chapters)


def _code(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Allows line breaks after `_` and `/`, for narrow screens."""
    text = BREAK_AFTER.sub(r"\1<wbr>", escape(tokens[index].content))
    return f"<code>{text}</code>"


# On a narrow screen a wide table scrolls inside its own frame, by touch or arrow keys, instead of the whole page.
def _open_table(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="wide" role="region" aria-label="Table" tabindex="0"><table>\n'


def _close_table(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"

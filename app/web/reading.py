"""Markdown as a page for people: headings that can be linked to, a list of contents, and nothing that runs.

A heading is called by its own words, or by the name that follows it: `### Unknown site {#problem-unknown-site}`.
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

NAMED = re.compile(r"(.*?) \{#([a-z0-9-]+)\}")
NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
BREAKS = re.compile(r"([_/]+)(?=\w)")
CHAPTER = "h2"


def page(markdown: str, title: str, root: str = "./") -> str:
    """`root` leads from the page to the first page of the service, so that it works behind any prefix."""
    reader = _reader()
    tokens = reader.parse(markdown)
    body = reader.renderer.render(tokens, reader.options, {})
    template = Template((files("app.web") / "static" / "reading.html").read_text("utf-8"))
    return template.substitute(title=escape(title), root=root, contents=_contents(tokens), body=body)


def _reader() -> MarkdownIt:
    """Without HTML in the text, and without pictures: what a card says comes from outside."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    reader.core.ruler.before("inline", "names", _name_headings)
    reader.add_render_rule("code_inline", _code)
    reader.add_render_rule("table_open", _open_table)
    reader.add_render_rule("table_close", _close_table)
    return reader


def _name_headings(state: StateCore) -> None:
    for opening, words in pairwise(state.tokens):
        if opening.type == "heading_open":
            named = NAMED.fullmatch(words.content)
            words.content, name = named.groups() if named else (words.content, words.content.lower())
            opening.attrSet("id", NOT_IN_A_NAME.sub("-", name).strip("-"))


def _contents(tokens: Sequence[Token]) -> str:
    chapters = [
        (opening.attrs["id"], words.content)
        for opening, words in pairwise(tokens)
        if opening.type == "heading_open" and opening.tag == CHAPTER
    ]
    return "\n".join(f'<li><a href="#{name}">{escape(words)}</a></li>' for name, words in chapters)


def _code(self: RendererHTML, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    """Names may be broken after `_` and `/`, where a narrow screen must break them somewhere."""
    text = BREAKS.sub(r"\1<wbr>", escape(tokens[place].content))
    return f"<code>{text}</code>"


# On a narrow screen a wide table moves inside its frame, by touch or by arrow keys, and not the whole page with it.
def _open_table(self: RendererHTML, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    return '<div class="wide" role="region" aria-label="Table" tabindex="0"><table>\n'


def _close_table(self: RendererHTML, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
    return "</table></div>\n"

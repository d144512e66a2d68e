"""Renders Markdown as a page: headings with anchors, a table of contents, and nothing that runs.

Headings get the anchors that GitHub gives them, so that a link works in the repository and on the page.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from string import Template
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from app.formats.card_markdown import PICTURE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
BREAK_AFTER = re.compile(r"([_/]+)(?=\w)")
CHAPTER = "h2"

Rewrite = Callable[[str], str | None]


def render(
    markdown: str,
    title: str,
    root: str = "./",
    rewrite: Rewrite | None = None,
    pictures: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """`root` is the relative path from this page to the first page, so that links work behind any prefix.

    `rewrite` is for documents of our own: it says where a link or a picture leads on this page, or None to leave only
    its text. Without it pictures are not shown.

    `pictures`: our own SVG by name; a code block marked `picture` that holds such a name is replaced by it.
    """
    parser = _parser()
    if rewrite is not None:
        parser.enable("image")
    tokens = parser.parse(markdown)
    if rewrite is not None:
        _rewrite_links(tokens, rewrite)
    body = parser.renderer.render(tokens, parser.options, {PICTURE: pictures})
    template = Template((files("app.web") / "static" / "markdown_page.html").read_text("utf-8"))
    return template.substitute(title=escape(title), root=root, contents=_contents(tokens), body=body)


def _parser() -> "MarkdownIt":
    """Without raw HTML and images, because the text of a card comes from outside."""
    from markdown_it import MarkdownIt  # with the first page, so that a service starts faster

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.core.ruler.before("inline", "anchors", _add_anchors)
    parser.core.ruler.before("inline", "corners", _make_empty_headers_cells)
    parser.core.ruler.before("inline", "alignment", _align_by_class)
    parser.add_render_rule("code_inline", _code)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    return parser


def _add_anchors(state: "StateCore") -> None:
    for opening, words in pairwise(state.tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", anchor(words.content))


def _align_by_class(state: "StateCore") -> None:
    """The policy of the pages allows no `style` attribute."""
    for token in state.tokens:
        if token.attrs.pop("style", None) == "text-align:right":
            token.attrSet("class", "right")


def anchor(heading: str) -> str:
    return NOT_IN_ANCHOR.sub("", heading.lower()).replace(" ", "-")


def _rewrite_links(tokens: "Sequence[Token]", rewrite: Rewrite) -> None:
    for inline in tokens:
        if inline.children:
            inline.children = _rewritten(inline.children, rewrite)


def _rewritten(parts: "Sequence[Token]", rewrite: Rewrite) -> "list[Token]":
    """Links do not nest, so a closing token belongs to the last opening one."""
    shown: list[Token] = []
    is_dead = False
    for part in parts:
        if part.type == "link_open":
            target = rewrite(str(part.attrs["href"]))
            is_dead = target is None
            part.attrSet("href", target or "")
        elif part.type == "image":
            source = rewrite(str(part.attrs["src"]))
            if source is None:
                shown += part.children or []  # its alternative text
                continue
            part.attrSet("src", source)
        if not (is_dead and part.type in ("link_open", "link_close")):
            shown.append(part)
    return shown


def _make_empty_headers_cells(state: "StateCore") -> None:
    """The empty corner of a table is not a header."""
    for opening, words, closing in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if opening.type == "th_open" and not words.content:
            opening.tag = closing.tag = "td"


def _contents(tokens: "Sequence[Token]") -> str:
    chapters = [
        (opening.attrs["id"], words.content)
        for opening, words in pairwise(tokens)
        if opening.type == "heading_open" and opening.tag == CHAPTER
    ]
    return "\n".join(f'<li><a href="#{name}">{escape(words)}</a></li>' for name, words in chapters)


def _code(self: "RendererHTML", tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:
    """Allows line breaks after `_` and `/`, for narrow screens."""
    text = BREAK_AFTER.sub(r"\1<wbr>", escape(tokens[index].content))
    return f"<code>{text}</code>"


def _fence(self: "RendererHTML", tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:
    block = tokens[index]
    picture = env[PICTURE].get(block.content.strip()) if block.info == PICTURE else None
    if picture is not None:
        return f"<figure>{picture}</figure>\n"
    # Wide code scrolls, which must be possible with the keyboard too.
    return self.fence(tokens, index, options, env).replace("<pre>", '<pre tabindex="0">', 1)


# On a narrow screen a wide table scrolls inside its own frame, by touch or arrow keys, instead of the whole page.
def _open_table(self: "RendererHTML", tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:
    return '<div class="wide" role="group" aria-label="Table" tabindex="0"><table>\n'


def _close_table(self: "RendererHTML", tokens: "Sequence[Token]", index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"

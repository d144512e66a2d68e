"""The card of a model as a page for people."""

from app.charts.axes import Look
from app.inference.executor import LoadedModel
from app.runtime.runtime import Runtime
from app.services.describe_card import describe_card
from app.web import markdown_page

TO_FIRST_PAGE = "../../"  # from the page of a card


async def card_page(runtime: Runtime, request_id: str, model: LoadedModel, width: int) -> str:
    """`width`: that of the pictures, in CSS pixels."""
    ref, card = model.ref, await describe_card(runtime, request_id, model, Look(width))
    as_json = f"[The same as JSON]({TO_FIRST_PAGE}v1/models/{ref.site}/{ref.version})"
    text = f"{card.markdown}\n## Digest\n\nSHA-256 of this version: `{ref.sha256}`\n\n{as_json}\n"
    return markdown_page.render(text, f"Normalcy: {ref.site} {ref.version}", TO_FIRST_PAGE, pictures=card.pictures)

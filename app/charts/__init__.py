"""Pictures as SVG text, and PNG from it: numbers in, text out; no JavaScript, no clock, no random ids.

`svg` writes elements, `theme` holds the colours, `axes` the scales and frames; `reference`, `density` and `visits` draw
the pictures of a patient, `card` those of a model, and `png` turns any of them into pixels. The same data gives the
same bytes. Pages show these very texts, so that the page and the API cannot differ.

What does not live here: the numbers (`app.inference`), their rounding (`app.formats`), and when to draw
(`app.services.draw_charts`).
"""

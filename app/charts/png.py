"""Pixels from our own SVG by resvg, a renderer without a JavaScript engine.

Only the fonts beside this file are used, never those of the machine, so that the same picture gives the same bytes
on every machine with the same version of the renderer.

The renderer holds the interpreter for as long as it works, some 50 to 100 ms, so a service does not call `rasterise`
itself: it runs this file as a program of its own (`app.runtime.workers`), which answers through a pipe. A request
is a scale (1 byte), a length (4 bytes, big-endian) and so many bytes of SVG; the answer a length and the PNG.
"""

import struct
import sys
from pathlib import Path
from typing import BinaryIO

import resvg_py

FAMILY = "Roboto"
FONTS = [str(Path(__file__).with_name("fonts") / f"{FAMILY}-{weight}.ttf") for weight in ("Regular", "Medium")]
REQUEST, ANSWER = struct.Struct(">BI"), struct.Struct(">I")


def rasterise(svg: str, scale: int) -> bytes:
    """A PNG of `scale` pixels for each unit of the picture."""
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            zoom=scale,
            skip_system_fonts=True,
            font_files=FONTS,
            font_family=FAMILY,
            sans_serif_family=FAMILY,
        )
    )


def answer_requests(requests: BinaryIO, answers: BinaryIO) -> None:
    """Until the other end is closed."""
    while len(head := requests.read(REQUEST.size)) == REQUEST.size:
        scale, length = REQUEST.unpack(head)
        png = rasterise(requests.read(length).decode(), scale)
        answers.write(ANSWER.pack(len(png)) + png)
        answers.flush()


if __name__ == "__main__":
    answer_requests(sys.stdin.buffer, sys.stdout.buffer)

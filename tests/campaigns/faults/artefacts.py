"""Damaged models: a site whose files are not those that were published is not served, and the file is named."""

import io
import pickle
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx

from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import started
from tests.campaigns.load_client import measurement
from tests.campaigns.service_process import MODELS

SITE, OTHER = "SoV", "AA"
FILES = ("posterior.npz", "card.json", "golden.json", "SHA256SUMS")


class Loaded:
    """Written into a file by pickle: makes a file appear if it is ever loaded."""

    def __init__(self, sign: Path) -> None:
        self._sign = sign

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self._sign,)


def flipped_bit(folder: Path, rng: random.Random) -> str:
    file = folder / rng.choice(FILES)
    content = bytearray(file.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(bytes(content))
    return file.name


def truncated(folder: Path, rng: random.Random) -> str:
    file = folder / rng.choice(FILES)
    content = file.read_bytes()
    file.write_bytes(content[: rng.randrange(len(content))])
    return file.name


def missing(folder: Path, rng: random.Random) -> str:
    file = folder / rng.choice(FILES)
    file.unlink()
    return file.name


def swapped(folder: Path, rng: random.Random) -> str:
    """With the file of the other site."""
    file = folder / rng.choice(FILES)
    shutil.copy(MODELS / OTHER / folder.name / file.name, file)
    return file.name


def pickled(folder: Path, rng: random.Random) -> str:
    """An array of Python objects, which a careless reader executes."""
    file, content = folder / "posterior.npz", io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(content, "w") as changed:
        names = archive.namelist()
        chosen = rng.choice(names)
        for name in names:
            changed.writestr(name, _objects(folder / "loaded") if name == chosen else archive.read(name))
    file.write_bytes(content.getvalue())
    return file.name


DAMAGES = (flipped_bit, truncated, missing, swapped, pickled)


async def run_artefacts(context: Context) -> Finding:
    """A cycle damages one file of one site, in turn by every kind of damage, and starts the service."""
    rng, seen, unmet = context.rng(), Counter[str](), list[str]()
    cycles = 0
    for number in context.each_cycle():
        damage, models = DAMAGES[number % len(DAMAGES)], context.folder / f"models-{number}"
        shutil.copytree(MODELS, models)
        version = max((models / SITE).iterdir())
        name = damage(version, rng)
        found = await _start(replace(context, folder=context.folder / str(number)), models)
        found = "loaded the pickle" if (version / "loaded").exists() else found
        found = (
            "did not name the file" if found.startswith("refused") and name not in found else found.partition(":")[0]
        )
        seen[found] += 1
        cycles += 1
        if found not in ("refused to start", "refused this site"):
            unmet.append(f"{damage.__name__} {name}, cycle {number}: {found}")
        shutil.rmtree(models)
    figures: dict[str, Figure] = {
        name: seen[name]
        for name in ("refused to start", "refused this site", "did not name the file", "served", "loaded the pickle")
    }
    return Finding(cycles, figures, unmet)


async def _start(context: Context, models: Path) -> str:
    """What the service did, with what it said."""
    try:
        async with started(context, {"NORMALCY_MODELS_DIR": str(models)}) as target:
            body = measurement(context.rng())
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.service.port}") as client:
                answer = await client.post(f"/v1/sites/{SITE}/score", json=body)
                other = await client.post(f"/v1/sites/{OTHER}/score", json=body)
                ready = await client.get("/health/ready")
            if other.status_code != 200:
                return f"other site not served, {other.status_code}"
            if answer.status_code == 503:
                return f"refused this site: {answer.text} {ready.text}"
            return "served" if answer.status_code == 200 else f"status {answer.status_code}"
    except RuntimeError as error:
        return f"refused to start: {error}"


def _objects(sign: Path) -> bytes:
    """The bytes of an .npy file with one object."""
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + pickle.dumps([Loaded(sign)])

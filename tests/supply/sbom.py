"""`make sbom`: software bills of materials (CycloneDX 1.6, JSON) of three environments and both images, into dist/sbom.

They are made from the hash-pinned requirements, the Dockerfile and the shipped models alone, so the same commit gives
the same bytes. The Dockerfile names Debian packages without versions: those of an image that was built are read from
its list of installed packages (`--debian FILE`, the image's /var/lib/dpkg/status).
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import app
from tests.supply.components import entries
from tests.supply.pins import Pin, installed_on, pins

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
# What the images run: Debian's Python, on Linux.
IMAGE = {"python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux", "platform_system": "Linux"}
# By subject: its file of pins, and the stage of the Dockerfile for an image.
SUBJECTS: Mapping[str, tuple[str, str | None]] = {
    "serve": ("serve", None),
    "train": ("train", None),
    "files": ("files", None),
    "image-cpu": ("serve", "cpu"),
    "image-gpu": ("gpu", "gpu"),
}
SPDX_EXPRESSION = re.compile(r" (?:AND|OR|WITH) ")

Json = dict[str, Any]


def bill(subject: str, debian: str | None = None) -> Json:
    """The bill of one of the subjects; `debian` is the content of the image's /var/lib/dpkg/status."""
    part, stage = SUBJECTS[subject]
    found = pins(part) if stage is None else installed_on(pins(part), **IMAGE)
    others = [] if stage is None else [*_debian(stage, debian), *_models()]
    root = f"normalcy-{subject}@{app.__version__}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application" if stage is None else "container",
                "bom-ref": root,
                "name": f"normalcy-{subject}",
                "version": app.__version__,
            }
        },
        "components": [*map(_library, found), *others],
        "dependencies": list(_dependencies(root, found, others)),
    }


def written(found: Json) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _library(pin: Pin) -> Json:
    licence = entries()[pin.name].licence
    found: Json = {
        "type": "library",
        "bom-ref": _purl(pin),
        "name": pin.name,
        "version": pin.version,
        "licenses": [_licence(licence)],
        "purl": _purl(pin),
        "externalReferences": [
            {
                "type": "distribution",
                "url": _purl(pin),
                "comment": "One of these files, as Python and the system require.",
                "hashes": [{"alg": "SHA-256", "content": one} for one in pin.hashes],
            }
        ],
    }
    if pin.marker:
        found["properties"] = [{"name": "normalcy:marker", "value": pin.marker}]
    return found


def _licence(text: str) -> Json:
    if SPDX_EXPRESSION.search(text):
        return {"expression": text}
    return {"license": {"name" if text.startswith("LicenseRef-") else "id": text}}


def _dependencies(root: str, found: Sequence[Pin], others: Iterable[Json]) -> Iterator[Json]:
    direct = [_purl(pin) for pin in found if pin.direct]
    yield {"ref": root, "dependsOn": sorted([*direct, *(other["bom-ref"] for other in others)])}
    for pin in found:
        yield {"ref": _purl(pin), "dependsOn": sorted({_purl(other) for other in found if pin.name in other.needed_by})}


def _debian(stage: str, status: str | None) -> Iterator[Json]:
    """The base, and the Debian packages on it: by name, or with versions where the list of a built image is given."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    [base] = re.findall(r"^ARG BASE=(\S+)$", text, re.MULTILINE)
    name, _, version = base.partition(":")
    yield {"type": "operating-system", "bom-ref": base, "name": name, "version": version}
    if status is None:
        yield from (_debian_package(package) for package in debian_packages(text, stage))
        return
    for block in status.strip().split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", block, re.MULTILINE))
        if fields["Status"] == "install ok installed":
            yield _debian_package(fields["Package"], fields["Version"], fields["Architecture"])


def debian_packages(dockerfile: str, stage: str) -> list[str]:
    """Those that a stage, and the stages that it begins with, install."""
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", dockerfile, re.MULTILINE | re.DOTALL))
    begins = {after: before for before, after in re.findall(r"^FROM (\S+) AS (\S+)$", dockerfile, re.MULTILINE)}
    found: list[str] = []
    while stage in stages:
        for line in re.findall(r"apt-get install ([^&\\\n]*)", stages[stage]):
            found += [word for word in line.split() if not word.startswith("-")]
        stage = begins[stage]
    return sorted(found)


def _debian_package(name: str, version: str = "", architecture: str = "") -> Json:
    arch = f"arch={architecture}&" if architecture else ""
    purl = f"pkg:deb/debian/{name}{'@' + version if version else ''}?{arch}distro={SUITE}"
    found: Json = {"type": "library", "bom-ref": purl, "name": name, "purl": purl}
    return {**found, "version": version} if version else found


def _models() -> Iterator[Json]:
    """The shipped models; the digest of a version is that of its list of files."""
    for sums in sorted((ROOT / "models_store").glob("*/*/SHA256SUMS")):
        site, version = sums.parts[-3:-1]
        yield {
            "type": "machine-learning-model",
            "bom-ref": f"model-{site}@{version}",
            "name": site,
            "version": version,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(sums.read_bytes()).hexdigest()}],
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the software bills of materials (CycloneDX).")
    parser.add_argument("--out", type=Path, default=ROOT / "dist/sbom")
    parser.add_argument("--subject", choices=SUBJECTS, help="only this one")
    parser.add_argument("--debian", type=Path, help="/var/lib/dpkg/status of the built image")
    options = parser.parse_args(arguments)
    if options.debian and not SUBJECTS.get(options.subject or "", ("", None))[1]:
        parser.error("--debian needs --subject image-cpu or --subject image-gpu")
    options.out.mkdir(parents=True, exist_ok=True)
    for subject in [options.subject] if options.subject else SUBJECTS:
        file = options.out / f"{subject}.cdx.json"
        file.write_text(written(bill(subject, options.debian and options.debian.read_text("utf-8"))), "utf-8")
        sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()

"""The licence of an installed package, from its metadata, and which licences are allowed."""

import re
from importlib.metadata import Distribution

# SPDX identifiers of licences that allow use in closed and open programs and ask for no more than their own text.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT",
    "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Zlib",
}  # fmt: skip
# Everything else needs a name and a reason.
EXCEPTIONS = {
    "axe-core": ("MPL-2.0", "checks pages in the tests, not delivered"),
    "certifi": ("MPL-2.0", "a list of certificates, used unchanged"),
    "hypothesis": ("MPL-2.0", "runs tests, not delivered"),
    "namex": ("", "its metadata name no licence; the file in the package is Apache-2.0"),
    "normalcy": ("", "this project: its owner has not chosen a licence yet"),
    "pathspec": ("MPL-2.0", "used to build and to type-check, not delivered"),
    "resvg-py": ("", "its metadata name no licence; the file in the package is that of MIT"),
    **{
        f"nvidia-{name}-cu12": ("LicenseRef-NVIDIA", "CUDA, in the GPU image alone; not a free licence")
        for name in (
            "cublas", "cuda-cupti", "cuda-nvcc", "cuda-nvrtc", "cuda-runtime", "cudnn", "cufft", "curand", "cusolver",
            "cusparse", "nccl", "nvjitlink",
        )
    },
}  # fmt: skip
# What metadata say in their own words. "BSD" does not say which: both that are in use are allowed.
SPELLINGS = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
LONGEST_NAME = 60  # some packages have the whole text instead of a name


def licence_of(installed: Distribution) -> str:
    """As an SPDX expression; empty if the metadata name none."""
    metadata = installed.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    short = metadata["License"].strip() if "License" in metadata else ""
    if short and len(short) < LONGEST_NAME and "\n" not in short:
        return SPELLINGS.get(short, short)
    classifiers = [one for one in metadata.get_all("Classifier") or [] if one.startswith("License :: ")]
    names = [one.rpartition(" :: ")[2] for one in classifiers]
    return " OR ".join(SPELLINGS.get(name, name) for name in names)


def is_allowed(name: str, licence: str) -> bool:
    """Every part of `A AND B` must be allowed, one of `A OR B`. One pair of parentheses may enclose the whole; with any
    other the answer is no, whatever it means."""
    if name in EXCEPTIONS:
        return EXCEPTIONS[name][0] == licence
    enclosed = re.fullmatch(r"\(([^()]*)\)", licence)
    expression = enclosed[1] if enclosed else licence
    choices = expression.split(" OR ")
    return "(" not in expression and any(all(part in ALLOWED for part in choice.split(" AND ")) for choice in choices)

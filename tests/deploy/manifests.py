"""The manifests of deploy/kubernetes as objects: what a kustomization lists, and what kustomize makes of it."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
LISTS = ("resources", "components", "patches")
Manifest = dict[str, Any]


def documents(file: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


def listed_files(folder: Path) -> list[Path]:
    """Every file that the kustomization of a folder leads to, its own included."""
    own = folder / "kustomization.yaml"
    [listing] = documents(own)
    found = [own]
    for name in LISTS:
        for entry in listing.get(name, ()):
            path = (folder / (entry["path"] if isinstance(entry, dict) else entry)).resolve()
            found += listed_files(path) if path.is_dir() else [path]
    return found


def resources(folder: Path) -> list[Manifest]:
    """Unchanged, without kustomizations and patches."""
    listings = [file for file in listed_files(folder) if file.name == "kustomization.yaml"]
    files = [(one.parent / name).resolve() for one in listings for name in documents(one)[0].get("resources", ())]
    return [manifest for file in files if file.is_file() for manifest in documents(file)]


def kustomize_command() -> list[str] | None:
    """None where neither kustomize nor kubectl, which contains it, is installed."""
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else None


def built(command: list[str], folder: Path) -> list[Manifest]:
    # It reads files and needs no cluster, so it gets no configuration of one.
    environment = {"PATH": os.environ["PATH"], "KUBECONFIG": os.devnull, "HOME": os.devnull}
    done = subprocess.run([*command, folder], env=environment, check=True, capture_output=True, timeout=60)  # noqa: S603
    return list(yaml.safe_load_all(done.stdout))


def pod_spec(manifest: Manifest) -> Manifest | None:
    """Of whatever starts pods."""
    spec: Manifest = manifest.get("spec", {})
    if manifest["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec["template"]["spec"] if "template" in spec else None

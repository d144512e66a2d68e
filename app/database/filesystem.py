"""Where the embedded database lies. Its locks and its shared memory do not work over a network."""

from pathlib import Path

from app.errors import DatabaseNotReady

MOUNTS = Path("/proc/self/mounts")  # Linux; elsewhere nothing is known and nothing is refused
NETWORK = ("nfs", "cifs", "smb", "sshfs", "glusterfs", "ceph", "lustre", "afs")


def refuse_network_folder(folder: Path, mounts: Path = MOUNTS) -> None:
    kind = _filesystem(folder.resolve(), mounts.read_text()) if mounts.exists() else ""
    if any(name in kind for name in NETWORK):
        raise DatabaseNotReady(
            f"NORMALCY_DATA_DIR lies on a network file system ({kind}), where an embedded database is not safe: "
            "choose a local folder, or set NORMALCY_DATABASE_URL."
        )


def _filesystem(folder: Path, mounts: str) -> str:
    """The kind of the innermost mount that holds the folder. A space in a path is written \\040 there."""
    lines = [line.split() for line in mounts.splitlines()]
    points = [(Path(line[1].replace("\\040", " ")), line[2]) for line in lines if len(line) > 2]
    holding = [(len(point.parts), kind) for point, kind in points if folder.is_relative_to(point)]
    return max(holding, key=lambda found: found[0], default=(0, ""))[1]

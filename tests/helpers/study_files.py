"""What a command has written, to be compared with what another has."""

from __future__ import annotations

from pathlib import Path


def everything(out: Path) -> dict[str, bytes]:
    """All files of a folder by name, byte for byte, but for measured times and the folder's own name."""
    files = (path for path in sorted(out.rglob("*")) if path.is_file() and path.parent.name != "times")
    return {
        str(path.relative_to(out)): path.read_bytes().replace(bytes(out), b"OUT")
        for path in files
        if path.name != "times.json"
    }

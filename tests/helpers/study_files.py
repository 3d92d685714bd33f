"""What a study leaves in its folder, to be compared."""

from __future__ import annotations

from pathlib import Path


def everything(folder: Path) -> dict[str, bytes]:
    """All files but those of measured times, byte for byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "times" and path.name != "times.json"
    }

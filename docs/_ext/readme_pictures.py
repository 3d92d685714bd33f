"""Run every code block of README.md by itself, as if pasted, and keep the pictures that they save.

``python docs/_ext/readme_pictures.py`` renews the pictures in ``docs/images``; another folder can be given.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

ROOT = Path(__file__).resolve().parents[2]

#: How the pictures look; what is in them is the README's.
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 110,
    "figure.figsize": (6.4, 2.9),
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "savefig.bbox": "tight",
}


def main(out: Path) -> list[Path]:
    """The pictures, moved into ``out``."""
    from matplotlib import pyplot as plt

    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, plt.rc_context(STYLE):
        os.chdir(folder)
        try:
            for block in blocks:
                exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102 - the README's own code
                plt.close("all")
        finally:
            os.chdir(before)
        for picture in sorted(Path(folder).glob("*.png")):
            made.append(out / picture.name)
            made[-1].write_bytes(picture.read_bytes())
    return made


if __name__ == "__main__":
    print(*main(Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT / "docs" / "images"), sep="\n")

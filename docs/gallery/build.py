"""Make the pictures of the gallery and its page: ``make gallery``.

Some of them: ``python docs/gallery/build.py lake tiles``. Every other file here is one picture: a title, a few
words, and a script that stands on its own.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

#: In the order of the page.
NAMES = ("baird", "variance", "lake", "step_sizes", "floor", "mountain_car", "tiles", "log")

PAGE = """# Gallery

Pictures made with gqlab, each with the whole script that made it: copy it into a file of your own. `make gallery` makes
them all again.
"""


def section(name: str) -> str:
    """A picture, its words and its script, as a part of the page."""
    title, _, words = (ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or "").partition("\n\n")
    first = (HERE / f"{name}.py").read_text().splitlines().index('"""', 1) + 2  # what follows the words
    return (
        f"\n## {title}\n\n![{title}]({name}.png)\n\n{words}\n\n"
        f"```{{literalinclude}} {name}.py\n:language: python\n:lines: {first + 1}-\n```\n"
    )


def page() -> str:
    """The page with all pictures."""
    return PAGE + "".join(section(name) for name in NAMES)


def draw(name: str, folder: Path = HERE) -> float:
    """Run a script where its picture belongs; the seconds that it took."""
    begun = time.perf_counter()
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, "-W", "error", HERE / f"{name}.py"], cwd=folder, env=environment, check=True)  # noqa: S603
    return time.perf_counter() - begun


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        seconds = draw(name)
        print(f"{name}.png  {(HERE / f'{name}.png').stat().st_size / 1000:.0f} kB  {seconds:.1f} s", flush=True)
    (HERE / "index.md").write_text(page())


if __name__ == "__main__":
    main()

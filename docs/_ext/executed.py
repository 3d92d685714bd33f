"""Pages whose code is run and whose output stands in them: the tutorials, also made notebooks, and the first page.

    python docs/_ext/executed.py [PAGE ...]         run the code of all of them, write output and pictures into them
    python docs/_ext/executed.py --check            say where what they show is not what their code prints
    python docs/_ext/executed.py --notebooks DIR    write each tutorial as a notebook

A block of ``python`` is run, after those before it in one process; one that begins with ``# name.py`` is written to
that file instead. What it prints stands in a block of ``output`` after it. An image after that is the figure that it
drew. A block of ``sh`` is run by the shell if it calls gqlab.

Tools that do this (myst-nb, jupytext with nbclient) keep the output out of the page, compare nothing, and bring an
IPython kernel and some thirty packages. This way a page can be read where it lies, and a test compares it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
TUTORIALS = [page for page in sorted((HERE / "tutorials").glob("*.md")) if page.stem != "index"]
PAGES = [HERE / "index.md", *TUTORIALS]
FENCE = re.compile(r"^```(python|sh|output)\n(.*?)^```\n", flags=re.M | re.S)
FILE = re.compile(r"# (\w+\.py)\n")
IMAGE = re.compile(r"\n*!\[([^\]]*)\]\((\S+\.png)\)\n")
NUMBER = re.compile(r"[-−]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Part:
    """A piece of a page: ``text``, or a block of ``python``, ``sh`` or ``output``."""

    kind: str
    text: str


def parts(page: str) -> list[Part]:
    """The page as pieces, in order; what a block prints is the piece after it."""
    found, last = [], 0
    for match in FENCE.finditer(page):
        found += [Part("text", page[last : match.start()]), Part(match[1], match[2])]
        last = match.end()
    found.append(Part("text", page[last:]))
    return [part for part in found if part.kind != "text" or part.text.strip()]


def picture_after(pieces: list[Part], k: int) -> str | None:
    """The path of the image that follows block k and its output, if one does."""
    following = pieces[k + 1 :]
    if following and following[0].kind == "output":
        following = following[1:]
    match = IMAGE.match(following[0].text) if following and following[0].kind == "text" else None
    return match[2] if match else None


# --- Running a page -------------------------------------------------------------------------------------------------


def run_here(page: Path, folder: Path) -> list[str]:
    """Run the page's blocks in this process, in ``folder``; returns what each of its pieces printed."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.show = lambda *args, **kwargs: None  # there is no window, and the figure is wanted afterwards
    plt.rcParams.update({"figure.figsize": (6.4, 3.6), "figure.constrained_layout.use": True, "savefig.dpi": 120})
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    names: dict[str, Any] = {"__name__": "__main__"}
    pieces, printed = parts(page.read_text()), []
    for k, piece in enumerate(pieces):
        printed.append(run_block(piece, names, f"{page.name}, block {k}"))
        if piece.kind == "python":
            picture = picture_after(pieces, k)
            assert bool(picture) == bool(plt.get_fignums()), (
                f"{page.name}: a figure and an image go together: {picture}"
            )
            if picture:
                Path(picture).parent.mkdir(parents=True, exist_ok=True)
                plt.savefig(picture)
                plt.close("all")
    return printed


def run_block(piece: Part, names: dict[str, Any], name: str) -> str:
    """Run one piece; returns what it printed."""
    if piece.kind == "sh" and piece.text.startswith("gqlab "):  # nothing that installs or builds
        shell = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(piece.text, shell=True, env=shell, capture_output=True, text=True, check=False)  # noqa: S602
        assert done.returncode == 0, f"{name}: {done.stderr}"
        return done.stdout
    if piece.kind != "python":
        return ""
    if match := FILE.match(piece.text):
        Path(match[1]).write_text(piece.text)
        return ""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(piece.text, name, "exec"), names)  # noqa: S102 - the page's own code
    return out.getvalue()


def run(page: Path, folder: Path, warned: str = "error") -> list[str]:
    """The same in a process of its own, where a warning is an error or what ``warned`` says; pictures are left in
    ``folder``."""
    command = [sys.executable, "-W", warned, __file__, "--run", str(page), "--notebooks", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - this file
    if done.returncode:
        raise RuntimeError(f"{page.name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# --- What it printed, against what the page shows -------------------------------------------------------------------


def unit(number: str) -> float:
    """One unit of a number's last digit; whole numbers are exact."""
    mantissa, _, exponent = number.partition("e")
    if not exponent and "." not in mantissa:
        return 0.0
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def same(shown: str, printed: str) -> bool:
    """Whether two outputs are equal up to one unit of the last digit of each number, and up to spaces."""
    if " ".join(NUMBER.sub("#", shown).split()) != " ".join(NUMBER.sub("#", printed).split()):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    values = [(a, float(a.replace("−", "-")), float(b.replace("−", "-"))) for a, b in pairs]
    return all(abs(a - b) <= 1.01 * unit(text) for text, a, b in values)


def differences(page: Path, folder: Path, warned: str = "error") -> list[str]:
    """Where the page shows another output than its code prints now."""
    pieces, printed = parts(page.read_text()), run(page, folder, warned)
    found = []
    for k, (piece, output) in enumerate(zip(pieces, printed, strict=True)):
        if piece.kind not in ("python", "sh"):
            continue
        shown = pieces[k + 1].text if k + 1 < len(pieces) and pieces[k + 1].kind == "output" else ""
        if not same(shown, output) and not (piece.kind == "sh" and not shown):
            found.append(f"{page.name}, after\n{piece.text}\nthe page shows\n{shown}\nthe code prints\n{output}")
    return found


def refresh(page: Path) -> None:
    """Write into the page what its code prints, and its pictures beside it."""
    with tempfile.TemporaryDirectory() as folder:
        pieces, printed = parts(page.read_text()), run(page, Path(folder))
        written = []
        for k, (piece, output) in enumerate(zip(pieces, printed, strict=True)):
            if piece.kind == "output":
                continue
            written.append(piece.text if piece.kind == "text" else f"```{piece.kind}\n{piece.text}```\n")
            shown = k + 1 < len(pieces) and pieces[k + 1].kind == "output"
            if output and (piece.kind == "python" or shown):
                written.append(f"\n```output\n{output}```\n")
            if piece.kind == "python" and (picture := picture_after(pieces, k)):
                (page.parent / picture).parent.mkdir(parents=True, exist_ok=True)
                (page.parent / picture).write_bytes((Path(folder) / picture).read_bytes())
        page.write_text(re.sub(r"^```\n```", "```\n\n```", "".join(written), flags=re.M))


# --- Notebooks ------------------------------------------------------------------------------------------------------


def notebook(page: Path) -> dict[str, Any]:
    """The page as a notebook (nbformat 4.5) with the outputs that it shows."""
    pieces = parts(page.read_text())
    cells: list[dict[str, Any]] = []
    for k, piece in enumerate(pieces):
        if piece.kind == "text":
            text = IMAGE.sub("\n", piece.text, count=1) if k and pieces[k - 1].kind != "text" else piece.text
            text = re.sub(r"\[\]\((?:\.\./)?([\w/]+\.md)\)", r"`docs/\1`", text)
            cells += [{"cell_type": "markdown", "source": text.strip()}] if text.strip() else []
        elif piece.kind == "output":
            cells[-1]["outputs"].insert(0, {"output_type": "stream", "name": "stdout", "text": piece.text})
        else:
            cells.append(code_cell(page, pieces, k))
    for k, cell in enumerate(cells):
        cell |= {"id": f"cell-{k}", "metadata": {}}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


def code_cell(page: Path, pieces: list[Part], k: int) -> dict[str, Any]:
    """A block as a cell; one that is a file writes it, one for the shell is run by it."""
    source, outputs = pieces[k].text.rstrip("\n"), []
    if pieces[k].kind == "sh":
        source = f"%%sh\n{source}"
    elif match := FILE.match(source):
        source = f"%%writefile {match[1]}\n{source}"
    if pieces[k].kind == "python" and (picture := picture_after(pieces, k)):
        data = base64.b64encode((page.parent / picture).read_bytes()).decode()
        outputs.append({"output_type": "display_data", "data": {"image/png": data}, "metadata": {}})
    return {"cell_type": "code", "execution_count": None, "source": source, "outputs": outputs}


def write_notebooks(folder: Path) -> None:
    """All tutorials as notebooks in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in TUTORIALS:
        (folder / f"{page.stem}.ipynb").write_text(json.dumps(notebook(page), indent=1, ensure_ascii=False))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Run the tutorials' code, and keep what it prints in their pages.")
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--notebooks", type=Path)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run_here(options.run.resolve(), options.notebooks.resolve())))
    elif options.notebooks:
        write_notebooks(options.notebooks)
    elif options.check:
        with tempfile.TemporaryDirectory() as folder:
            found = [difference for page in options.pages for difference in differences(page, Path(folder))]
        sys.exit("\n".join(found) or 0)
    else:
        for page in options.pages:
            refresh(page)


if __name__ == "__main__":
    main()

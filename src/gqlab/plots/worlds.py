"""Pictures of finite problems: grid worlds with values and arrows, and small chains as graphs.

Both show a value in every state (its colour) and what a policy does there: that of θ, or an optimal one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gqlab.plots.style import GREEN, GREY, INK, VERMILION, axes_of, styled
from gqlab.support import checks
from gqlab.support.checks import FloatArray

#: Above this many states a graph is a tangle, and the cells of a grid world are too small to read.
MOST_NODES, MOST_CELLS = 24, 900

#: Probabilities below this are not drawn.
LEAST_SEEN = 0.02


class PicturedWorld(NamedTuple):
    """A finite problem, as a picture needs it."""

    transition: FloatArray  # (S, A, S)
    reward: FloatArray  # (S, A, S)
    terminal: NDArray[np.bool_]  # (S,)
    initial: FloatArray | None  # (S,)
    state_ids: NDArray[Any]  # (S,)
    value: FloatArray  # (S,)  what colours a state
    policy: FloatArray  # (S, A)  what its arrows show


def grid_size(state_ids: NDArray[Any], own: tuple[int, int] | None, shape: Any) -> tuple[int, int] | None:
    """(rows, columns) of the grid whose cells are the states: the given one, or the environment's; None for a graph."""
    size = own if shape is None else _shape(state_ids, shape)
    n, most = len(state_ids), MOST_NODES if size is None else MOST_CELLS
    if n > most or (size is not None and size[0] * size[1] > most):
        raise ValueError(f"problem has {n:,} states, more than the {most} that a picture can show")
    return size


def world_plot(world: PicturedWorld, size: tuple[int, int] | None, ax: Any) -> Any:
    """Values and policy: on a grid if the states are its cells, else as a graph."""
    with styled():
        return _draw_graph(world, ax) if size is None else _draw_grid(world, size, ax)


def _shape(state_ids: NDArray[Any], shape: Any) -> tuple[int, int]:
    given = checks.plain_array("shape", shape)
    if given.shape != (2,) or given.dtype.kind not in "iu" or given.min() < 1:
        raise ValueError(f"shape is {checks.shown(shape)}, expected (rows, columns)")
    rows, columns = (int(n) for n in given)
    most = int(state_ids.max())
    if not most < rows * columns <= MOST_CELLS:
        raise ValueError(
            f"shape is {(rows, columns)}: {rows * columns} cells, expected more than {most}, the largest state, "
            f"and at most {MOST_CELLS}"
        )
    return rows, columns


# --- Grid worlds ----------------------------------------------------------------------------------------------------


def directions(transition: FloatArray, state_ids: NDArray[Any], shape: tuple[int, int]) -> FloatArray:
    """Where each action leads, (A, 2) as (columns, rows) of −1, 0 or 1: its mean move between neighbours."""
    rows, columns = np.divmod(state_ids, shape[1])
    down, right = rows[None, :] - rows[:, None], columns[None, :] - columns[:, None]  # (S, S)
    near = np.abs(down) + np.abs(right) == 1
    weights = np.where(near[:, None, :], transition, 0.0)
    moves = np.stack(
        [(weights * right[:, None, :]).sum(axis=(0, 2)), (weights * down[:, None, :]).sum(axis=(0, 2))], axis=-1
    )
    largest = np.abs(moves).max(axis=-1, keepdims=True)
    along = np.abs(moves) >= largest - 1e-9  # the edges of the grid shift the mean a little
    return np.where(along, np.sign(np.round(moves, 9)), 0.0)


def _draw_grid(world: PicturedWorld, shape: tuple[int, int], ax: Any) -> Any:
    value, (rows, columns) = world.value, shape
    axes = axes_of(ax, (1.4 + 0.72 * columns, 0.5 + 0.72 * rows) if max(shape) <= 12 else None)
    cells = np.full(rows * columns, np.nan)
    live = ~world.terminal
    cells[world.state_ids[live]] = value[live]
    import matplotlib

    colours = matplotlib.colormaps["cividis"].with_extremes(bad="#d0d7de")
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    image = axes.pcolormesh(*edges, cells.reshape(shape), cmap=colours, edgecolors="white", linewidth=2)
    axes.set(aspect="equal", xlim=edges[0][[0, -1]], ylim=edges[1][[-1, 0]], xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.figure.colorbar(image, ax=axes, label="value", shrink=0.85, fraction=0.046)
    middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
    _draw_arrows(axes, world, shape, np.where(value > middle, INK, "white"))
    _name_cells(axes, world, shape, np.where(value > middle, INK, "white"))
    return axes


def _draw_arrows(axes: Any, world: PicturedWorld, shape: tuple[int, int], ink: NDArray[Any]) -> None:
    """An arrow for every action, longer the likelier it is."""
    ways, policy = directions(world.transition, world.state_ids, shape), world.policy
    for s in np.flatnonzero(~world.terminal):
        row, column = divmod(int(world.state_ids[s]), shape[1])
        likely = np.flatnonzero(policy[s] > 0.05)
        for a in likely:
            step = (0.28 if len(likely) == 1 else 0.38 * np.sqrt(policy[s, a] / policy[s].max())) * ways[a]
            tail = -step if len(likely) == 1 else 0 * step
            arrow = {
                "arrowstyle": "-|>",
                "color": ink[s],
                "linewidth": 1.3,
                "mutation_scale": 9,
                "shrinkA": 0,
                "shrinkB": 0,
            }
            if np.any(step):
                axes.annotate(
                    "", (column + step[0], row + step[1]), (column + tail[0], row + tail[1]), arrowprops=arrow
                )


def _name_cells(axes: Any, world: PicturedWorld, shape: tuple[int, int], ink: NDArray[Any]) -> None:
    """Where episodes begin and end: S, G, and × at an end with less reward than another."""
    ends = np.flatnonzero(world.terminal)
    arriving = np.array([world.reward[..., s][world.transition[..., s] > 0].max(initial=-np.inf) for s in ends])
    for s, pay in zip(ends, arriving, strict=True):
        row, column = divmod(int(world.state_ids[s]), shape[1])
        goal = pay == arriving.max()
        text, colour = ("G", GREEN) if goal else ("×", VERMILION)
        axes.text(column, row, text, color=colour, ha="center", va="center", weight="bold", size=14)
    if world.initial is not None:
        for s in np.flatnonzero(world.initial > 0):
            row, column = divmod(int(world.state_ids[s]), shape[1])
            axes.text(column - 0.42, row - 0.4, "S", color=ink[s], ha="left", va="top", weight="bold", size=9)


# --- Graphs ---------------------------------------------------------------------------------------------------------


def _draw_graph(world: PicturedWorld, ax: Any) -> Any:
    """States on a circle, coloured by value; likelier transitions have stronger arrows."""
    n, value = len(world.value), world.value
    chain = np.einsum("sa,sat->st", world.policy, world.transition)
    axes = axes_of(ax, (5.2, 4.4))
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    place = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * (n > 1)
    radius = min(0.17, 1.9 / max(n, 2))
    for s, t in np.argwhere(chain > LEAST_SEEN):
        _draw_arc(axes, place[s], place[t], float(chain[s, t]), radius)
    dots = axes.scatter(
        *place.T, s=1.0, c=value, cmap="cividis", zorder=0
    )  # only for the colour bar; the circles below are sized in data units
    from matplotlib.patches import Circle

    shades = dots.to_rgba(value)
    for s, shade in enumerate(shades):
        end = bool(world.terminal[s])
        axes.add_patch(
            Circle(
                place[s],
                radius,
                facecolor=shade,
                edgecolor=VERMILION if end else INK,
                linewidth=2.5 if end else 1,
                zorder=3,
            )
        )
        dark = np.dot(shade[:3], (0.3, 0.59, 0.11)) < 0.5
        axes.text(
            *place[s],
            str(world.state_ids[s]),
            color="white" if dark else INK,
            ha="center",
            va="center",
            size=9,
            zorder=4,
        )
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    axes.axis("off")
    if np.ptp(value) > 0:
        axes.figure.colorbar(dots, ax=axes, label="value", shrink=0.7, fraction=0.046)
    return axes


def _draw_arc(axes: Any, start: FloatArray, end: FloatArray, probability: float, radius: float) -> None:
    """A curved arrow from circle to circle, or a loop on the outer side of one."""
    if np.array_equal(start, end):
        out = start / np.linalg.norm(start) if np.any(start) else np.array([0.0, 1.0])
        side = 0.55 * np.array([-out[1], out[0]])
        first, last, bend = start + radius * (0.85 * out + side), start + radius * (0.85 * out - side), -1.6
    else:
        way = (end - start) / np.linalg.norm(end - start)
        turn = np.array([way[1], -way[0]]) * 0.35  # so that both directions between two states are visible
        first, last, bend = start + radius * (way - turn), end - radius * (1.12 * way + turn), 0.13
    look = {
        "arrowstyle": "-|>", "mutation_scale": 11, "color": GREY, "linewidth": 0.5 + 2.2 * probability,
        "alpha": 0.35 + 0.65 * probability, "shrinkA": 0, "shrinkB": 0, "connectionstyle": f"arc3,rad={bend}",
    }  # fmt: skip
    axes.annotate("", last, first, arrowprops=look, zorder=1)

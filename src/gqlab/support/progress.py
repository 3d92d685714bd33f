"""Progress bars: whether there is one, and how often it is drawn."""

from __future__ import annotations

import sys
from typing import Any


class Silent:
    """A bar that shows nothing."""

    n = 0

    def update(self, amount: float = 1) -> None:
        """Nothing."""

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def on_terminal() -> bool:
    """Whether stderr is a terminal; a daemon has no stderr at all."""
    return sys.stderr is not None and sys.stderr.isatty()


def progress_bar(wanted: bool | None, **settings: Any) -> Any:
    """A tqdm bar. A silent one if it is not wanted (None: wanted on a terminal only), or stderr or tqdm is missing.

    In a log file it is drawn every ten seconds.

    Examples
    --------
    >>> with progress_bar(False, total=3) as bar:
    ...     bar.update(1)
    """
    if sys.stderr is None or not (on_terminal() if wanted is None else wanted):
        return Silent()
    try:
        from tqdm import tqdm
    except ImportError:
        return Silent()
    return tqdm(mininterval=0.1 if on_terminal() else 10.0, **settings)

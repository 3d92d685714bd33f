"""Ctrl-C where the interpreter cannot react to it: in compiled code and in the compiler."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_here = threading.local()


def set_stop(flag: Any) -> None:
    """Set the flag that ends the calls of this thread when it becomes 1: another thread receives Ctrl-C for it."""
    _here.stop = flag


def stop_flag() -> Any:
    """The flag that was set for this thread, or None: it ends runs whose ``Settings.stop`` is None."""
    return getattr(_here, "stop", None)


@contextmanager
def heard_interrupts(act: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls ``act``, and becomes a KeyboardInterrupt at the end of the block at the latest.

    An exception that is raised wherever the interpreter happens to be can get lost: in a callback of the compiler, or
    between two statements. Here the signal is remembered instead. A user's own handler, and threads other than the main
    one, are left alone.
    """
    default = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    heard = []

    def hear(*_: object) -> None:
        heard.append(True)
        act()

    if default:
        signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt

"""Ray: an existing cluster, or processes of this machine that Ray starts and ends."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Self

from gqlab.engine.cpu import default_threads
from gqlab.support import checks
from gqlab.support.files import one_line
from gqlab.tasks.base import LOSSES, Engine, Outcome, Task, perform

#: Seconds between two checks of the cluster, and the timeout after which it counts as unreachable.
POLL, ANSWER = 0.5, 10.0

#: Environment variables for a Ray that is started here: the ports of a single-machine cluster are open to that machine
#: only (Ray's own default on Windows and macOS), and no usage statistics are sent.
LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}

#: Addresses of this machine that only it can reach; Ray would replace them by another of its addresses.
LOOPBACK = ("127.", "localhost:", "[::1]:")

#: In a worker: what every task gets, by its Ray reference.
_shared: dict[str, Mapping[str, Any]] = {}


def _work(kept: list[Any], function: Any, arguments: tuple[Any, ...]) -> Outcome:
    """Make a call; the shared data is fetched by the first task of a worker and kept for the others."""
    import ray

    name = kept[0].hex()
    if name not in _shared:
        _shared.clear()
        _shared[name] = ray.get(kept[0])
    return perform(_shared[name], function, arguments)


class Ray(Engine):
    """Tasks on a Ray cluster: ``pip install 'gqlab[ray]'``. On ``device="cuda"`` each task asks for a GPU.

    Parameters
    ----------
    address : str, optional
        "auto", or "host:port" of a cluster to join. Default: Ray runs in processes of this machine while the
        engine is open, reachable from this machine only (unless Ray was imported before).
    workers : int, optional
        How many tasks run at a time. Default: one for each core, or for each GPU, of the cluster.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if address is not None:
            checks.instance("address", address, str, "'auto' or 'host:port'")
        self.address = address
        self._given = None if workers is None else checks.integer("workers", workers, least=1, below=2**16)
        self.workers = self._given or default_threads()
        self._ray: Any = None
        self._began = False
        self._waiting: deque[Task] = deque()
        self._running: dict[Any, Task] = {}

    def __enter__(self) -> Self:
        local = self.address is None or self.address.startswith(LOOPBACK)
        with _environment(LOCAL if local else {}):
            self._ray = load_ray()
            self._began = not self._ray.is_initialized()
            if self._began:
                self._begin()
            else:
                self._check_joined()
        return self

    def _check_joined(self) -> None:
        """``ValueError`` if Ray is already running on a cluster other than ``address``."""
        if self.address is None or self.address == "auto" or self.address.startswith("ray://"):  # a client's own port
            return
        joined = self._ray.get_runtime_context().gcs_address
        same = {_resolved(self.address)}
        if self.address.startswith(LOOPBACK):
            same.add(f"{self._ray.util.get_node_ip_address()}:{self.address.rpartition(':')[2]}")
        if _resolved(joined) not in same:
            raise ValueError(f"address is {self.address!r}, but Ray is already initialised, on the cluster at {joined}")

    def _begin(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if self.address is None:
                self._ray.init(num_cpus=self.workers, include_dashboard=False, **quiet)
                return
            _check_address(self.address)
            self._ray.init(address=self.address, **quiet)
        except Exception as error:  # where a machine is too busy to start it, Ray raises a plain one
            with contextlib.suppress(Exception):  # what of it has started
                self._ray.shutdown()
            where = (
                "Ray cannot be started"
                if self.address is None
                else f"address is {self.address!r}: no Ray cluster answers there"
            )
            raise ValueError(f"{where} ({one_line(error)})") from None

    def prepare(self, shared: Mapping[str, Any], device: str = "cpu") -> None:
        super().prepare(shared, device)
        resources = self._ray.cluster_resources()
        self.workers = self._given or max(1, int(resources.get("GPU" if device == "cuda" else "CPU", 1)))
        if device == "cuda" and not resources.get("GPU"):
            raise ValueError("device 'cuda': the Ray cluster has no GPU")
        self._kept = [self._ray.put(self.shared)]
        # Ray itself retries a task whose worker died.
        options = {"num_cpus": 1, "num_gpus": int(device == "cuda"), "max_retries": LOSSES}
        self._work = self._ray.remote(**options)(_work)

    def submit(self, task: Task) -> None:
        self._waiting.append(task)
        self._dispatch()

    def _dispatch(self) -> None:
        # On a cluster larger than ``workers`` Ray would use every core.
        larger = self._given is not None and not (self._began and self.address is None)
        while self._waiting and not (larger and len(self._running) >= self.workers):
            task = self._waiting.popleft()
            self._running[self._work.remote(self._kept, task.function, task.arguments)] = task

    def results(self) -> Iterator[tuple[Task, Outcome]]:
        while self._running:
            done, _ = self._ray.wait(list(self._running), timeout=POLL)
            for reference in done:
                task = self._running.pop(reference)
                self._dispatch()
                try:
                    outcome = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    outcome = Outcome(error=f"{type(error).__name__}: {one_line(error)}")
                yield task, outcome

    def close(self) -> None:
        if self._ray is None:
            return
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._waiting.clear()
        self._running.clear()
        self._kept = []
        if self._began:
            self._ray.shutdown()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the duration of the block, unless they are already set."""
    new = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


def load_ray() -> Any:
    """Ray, or a ``ValueError`` that says how to install it."""
    try:
        import ray
    except ImportError as error:
        raise ValueError(f"engine 'ray': Ray is missing ({error}); pip install 'gqlab[ray]'") from None
    return ray


def _resolved(address: str) -> str:
    """An address with the number of its host."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host)
    return f"{host}:{port}"


def _check_address(address: str) -> None:
    """``ValueError`` if nothing listens there: Ray itself would keep trying for a long time."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise ValueError(f"address is {address!r}, expected 'auto' or 'host:port'")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER).close()
    except OSError as error:
        raise ValueError(f"address is {address!r}: no Ray cluster answers there ({one_line(error)})") from None

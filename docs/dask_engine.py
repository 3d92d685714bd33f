"""An engine on Dask: gq.grid(..., engine=Dask("tcp://scheduler:8786"), store=FOLDER)."""

from distributed import Client, as_completed

from gqlab.tasks import Engine, Outcome, perform


class Dask(Engine):
    def __init__(self, address=None):
        self.address = address  # None: processes of this machine

    def __enter__(self):
        # One thread for each process: tasks are of one core.
        self.client = Client(self.address) if self.address else Client(threads_per_worker=1, dashboard_address=None)
        self.running, self.ended = {}, as_completed()
        return self

    def prepare(self, shared, device="cpu"):
        super().prepare(shared, device)
        self.workers = sum(self.client.nthreads().values())
        self.sent = self.client.scatter(self.shared, broadcast=True, hash=False)  # to every worker, once

    def submit(self, task):
        # Dask would give two equal calls one answer; a task that is made again is to be made again.
        future = self.client.submit(perform, self.sent, task.function, task.arguments, pure=False)
        self.running[future] = task
        self.ended.add(future)

    def results(self):
        for future in self.ended:
            task = self.running.pop(future)
            error = future.exception()  # of Dask itself: the workers died, again and again
            yield task, future.result() if error is None else Outcome(error=f"{type(error).__name__}: {error}")

    def close(self):
        self.client.close()

"""Engines: what becomes of tasks, of those that fail, and of addresses, workers and GPUs."""

from __future__ import annotations

import os
import sys
import time
import types

import pytest

import gqlab as gq
from gqlab.tasks import Engine, Outcome, Task, base, on_ray, run_tasks
from helpers.futures import FakeFuture


class FakeRay:
    """What the engine uses of Ray, on a cluster that somebody has joined already; the last task ends first."""

    exceptions = types.SimpleNamespace(RayError=RuntimeError)
    util = types.SimpleNamespace(get_node_ip_address=lambda: "192.0.2.2")
    get_runtime_context = staticmethod(lambda: types.SimpleNamespace(gcs_address="192.0.2.2:6379"))
    cluster_resources = staticmethod(lambda: {"CPU": 8.0})
    is_initialized = staticmethod(lambda: True)
    cancel = staticmethod(lambda reference, force: None)

    def __init__(self):
        self.most = 0

    def put(self, value):
        return value

    def remote(self, **options):
        return lambda function: types.SimpleNamespace(remote=lambda kept, call, arguments: FakeFuture(call, arguments))

    def wait(self, running, timeout):
        self.most = max(self.most, len(running))
        return running[-1:], running[:-1]

    def get(self, future):
        return base.perform({}, future.call, future.arguments)


def test_an_address_is_not_ignored_where_ray_runs_already(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
    for address in (None, "auto", "192.0.2.2:6379", "127.0.0.1:6379", "localhost:6379"):
        with on_ray.Ray(address):
            pass
    for address in ("127.0.0.1:6380", "192.0.2.3:6379"):
        message = f"address is '{address}', but Ray is already initialised, on the cluster at 192.0.2.2:6379"
        with pytest.raises(ValueError, match=message), on_ray.Ray(address):
            pass


@pytest.mark.parametrize(("workers", "most"), [(3, 3), (None, base.BACKLOG * 8)])
def test_no_more_tasks_run_on_ray_than_were_asked_for(monkeypatch, workers, most):
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
    with on_ray.Ray(workers=workers) as engine:
        engine.prepare({})
        found = [outcome.value for _, outcome in run_tasks(engine, (Task(plus_one, (k,)) for k in range(40)))]
        assert engine._ray.most == most
    assert sorted(found) == list(range(1, 41))


def plus_one(shared, k):
    return k + 1


class Scripted(Engine):
    """Makes tasks at once, one when asked for a result; ``script`` gives the outcome of each attempt at a task."""

    def __init__(self, script):
        self.script, self.workers, self.waiting, self.most = script, 2, [], 0

    def submit(self, task):
        self.waiting.append(task)
        self.most = max(self.most, len(self.waiting))

    def results(self):
        while self.waiting:
            task = self.waiting.pop(0)
            yield task, self.script(task.arguments[0])


def test_a_task_that_fails_is_made_again_and_few_wait_at_a_time():
    attempts = []

    def script(name):
        attempts.append(name)
        tried = attempts.count(name)
        if name == 3:
            return Outcome(error="bad")
        if name == 5:
            return Outcome(error="dead", lost=True) if tried < 8 else Outcome("at last")
        return Outcome(f"made {name}") if name != 7 or tried == 2 else Outcome(error="once")

    engine = Scripted(script)
    taken = []
    tasks = (taken.append(k) or Task(print, (k,)) for k in range(20))
    outcomes = {}
    for task, outcome in run_tasks(engine, tasks):
        assert task.arguments[0] not in outcomes
        assert len(taken) <= len(outcomes) + base.BACKLOG * engine.workers
        outcomes[task.arguments[0]] = outcome
    assert len(outcomes) == 20
    assert engine.most <= base.BACKLOG * engine.workers
    assert (outcomes[3].error, attempts.count(3)) == ("bad", 1 + base.RETRIES)
    assert (outcomes[5].value, attempts.count(5)) == ("at last", 8)
    assert (outcomes[7].value, attempts.count(7)) == ("made 7", 2)


def test_a_task_whose_workers_always_die_ends():
    attempts = []
    engine = Scripted(lambda name: attempts.append(name) or Outcome(error="dead", lost=True))
    [(_, outcome)] = run_tasks(engine, [Task(print, (0,))])
    assert outcome.lost
    assert len(attempts) == 1 + base.LOSSES


def gpu_of_a_worker(shared):
    time.sleep(0.2)  # so that no worker takes both tasks
    return os.environ["CUDA_VISIBLE_DEVICES"]


def test_every_gpu_has_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr("gqlab.tasks.processes.visible_gpus", lambda: ["3", "5"])
    with gq.tasks.Processes() as engine:
        engine.prepare({}, "cuda")
        assert engine.workers == 2
        tasks = [gq.tasks.Task(gpu_of_a_worker) for _ in range(2)]
        assert {outcome.value for _, outcome in gq.tasks.run_tasks(engine, tasks)} == {"3", "5"}


def test_a_task_of_ray_asks_for_a_gpu():
    asked = {}

    class Cluster:
        def __init__(self, gpus):
            self.gpus = gpus

        def cluster_resources(self):
            return {"CPU": 8.0, "GPU": self.gpus}

        def put(self, value):
            return value

        def remote(self, **options):
            asked.update(options)
            return lambda function: function

    engine = gq.tasks.Ray()
    engine._ray = Cluster(3.0)
    engine.prepare({}, "cuda")
    assert (engine.workers, asked["num_gpus"]) == (3, 1)
    engine._ray = Cluster(0.0)
    with pytest.raises(ValueError, match=r"^device 'cuda': the Ray cluster has no GPU$"):
        engine.prepare({}, "cuda")

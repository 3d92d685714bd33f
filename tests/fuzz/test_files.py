"""Damaged and crafted files of every format: what is read is what was written, or there is one ValueError.

A new format is one entry of ``FORMATS``.
"""

from __future__ import annotations

import dataclasses
import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gqlab as gq
from gqlab.studies.archive import Archive
from gqlab.studies.keys import Call
from gqlab.studies.paper.jobs import Job, measure
from gqlab.studies.paper.problems import ProblemSpec

#: Damaged files of each format and kind of damage; ``make fuzz`` asks for more.
CASES = int(os.environ.get("GQLAB_FUZZ_FILES", "60"))

JOB = Job(ProblemSpec("garnet", 0), gq.GreedyGQ(), n_samples=1000, n_runs=2, record_every=100, metrics=("gradient",))


def write_result(folder: Path) -> Path:
    problem = gq.Problem(gq.garnet(seed=0), gq.random_features(gq.garnet(seed=0), dim=4))
    gq.run(problem, gq.VRGreedyGQ(batch_size=50), 500, n_runs=3, record_every=50, watch=gq.Watch("mspbe")).save(
        folder / "r.npz"
    )
    return folder / "r.npz"


def write_job(folder: Path) -> Path:
    archive, call = Archive(folder), Call(measure, (JOB,))
    archive.prepare()
    archive.save(call.key, call.settings, measure(JOB))
    return archive.path(call.key)


def read_job(path: Path) -> Any:
    """An archive answers damage with a line on stderr and None: the job is computed again."""
    found = Archive(path.parents[1]).load(Call(measure, (JOB,)))
    if found is None:
        raise ValueError("damaged")
    return found


def write_agent(folder: Path) -> Path:
    coder = gq.TileCoder(n_tilings=4, bins=4)
    gq.Agent("MountainCar-v0", coder, gq.Sarsa(0.3, trace=0.9)).learn(50).save(folder / "agent.npz")
    return folder / "agent.npz"


def read_agent(path: Path) -> Any:
    agent = gq.Agent.load(path)
    return agent.theta, agent.num_timesteps, repr(agent), agent._worker.actions


def write_model(folder: Path) -> Path:
    coder = gq.TileCoder(n_tilings=4, bins=4, low=[0, 0], high=[1, 1]).fit([[0.0, 0.0]])
    theta = np.arange(2.0 * coder.n_features_out_).reshape(2, -1)
    gq.LinearQ(theta, coder, history={"steps": np.arange(3)}, metadata={"seed": 1}).save(folder / "model.npz")
    return folder / "model.npz"


def read_model(path: Path) -> Any:
    model = gq.LinearQ.load(path)
    return model.theta, repr(model.encoder), dict(model.history), dict(model.metadata), model.discount


def write_sweep(folder: Path) -> Path:
    problem = gq.Problem(gq.garnet(seed=0), gq.random_features(gq.garnet(seed=0), dim=4))
    settings = {"n_samples": 500, "n_runs": 2, "record_every": 50, "watch": gq.Watch("mspbe")}
    gq.grid(problem, gq.VRGreedyGQ(batch_size=50), seeds=[3, 4], **settings, store=folder)
    [path] = folder.glob("cells/*/*.npz")
    return path


def read_sweep(path: Path) -> Any:
    """A store that opens, and the results in it."""
    return tuple(gq.open_grid(path.parents[2]).results)


#: By name: what writes a file into a folder, and what reads it.
FORMATS = {
    "result": (write_result, gq.RunResult.load),
    "job": (write_job, read_job),
    "agent": (write_agent, read_agent),
    "model": (write_model, read_model),
    "sweep": (write_sweep, read_sweep),
}


@pytest.fixture(scope="module", params=FORMATS)
def kept(request, tmp_path_factory):
    """A file, its bytes, what reads it and what it holds."""
    write, read = FORMATS[request.param]
    path = write(tmp_path_factory.mktemp(request.param))
    return path, path.read_bytes(), read, content(read(path))


def content(thing: Any) -> Any:
    """Everything that was read, as something that can be compared."""
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape, thing.tobytes()
    if isinstance(thing, dict):
        return {name: content(value) for name, value in thing.items()}
    if isinstance(thing, tuple):
        return [content(value) for value in thing]
    if dataclasses.is_dataclass(thing):
        return {field.name: content(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    return thing


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    k = int(rng.integers(len(data)))
    return data[:k] + bytes([data[k] ^ 1 << int(rng.integers(8))]) + data[k + 1 :]


def flip_structure(data: bytes, rng: np.random.Generator) -> bytes:
    """A bit of the directory at the end: names, sizes, offsets, flags."""
    first = data.index(b"PK\x01\x02")
    return data[:first] + flip(data[first:], rng)


def flip_header(data: bytes, rng: np.random.Generator) -> bytes:
    """A bit of an array's own header."""
    starts = [k for k in range(len(data)) if data.startswith(b"\x93NUMPY", k)]
    k = int(rng.choice(starts))
    return data[:k] + flip(data[k : k + 128], rng) + data[k + 128 :]


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(int(k) for k in rng.integers(len(data), size=2))
    return data[:a] + rng.bytes(b - a) + data[b:]


def cut_out(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(int(k) for k in rng.integers(len(data), size=2))
    return data[:a] + data[b:]


DAMAGES = [flip, flip_structure, flip_header, truncate, overwrite, cut_out]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_refused_or_holds_what_was_written(kept, damage):
    path, whole, read, before = kept
    rng = np.random.default_rng([len(damage.__name__), 0])
    messages = []
    for _ in range(CASES):
        path.write_bytes(damage(whole, rng))
        try:
            after = content(read(path))
        except ValueError as error:
            messages.append(str(error))
        else:
            assert after == before
    path.write_bytes(whole)
    assert len(messages) >= CASES // 4
    assert not any("\n" in message for message in messages)


def rebuilt(whole: bytes, change) -> bytes:
    """The file, made anew from its members: ``change`` gets a dict from names to bytes."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in change(members).items():
            archive.writestr(name, data)
    return out.getvalue()


def with_header(text: str, values: bytes = b""):
    """The first array with another header and other values."""

    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        head = text.encode()
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        data = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(head)) + head + values
        return {**members, next(iter(members)): data}

    return lambda whole: rebuilt(whole, change)


def deflated(whole: bytes) -> bytes:
    """64 megabytes in 64 kilobytes: nothing that is compressed is opened."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("metadata.npy", "w") as member:
        for _ in range(64):
            member.write(bytes(1 << 20))
    return out.getvalue()


def encrypted(whole: bytes) -> bytes:
    k = whole.index(b"PK\x01\x02") + 8
    return whole[:k] + bytes([whole[k] | 1]) + whole[k + 1 :]


def overlapping(whole: bytes) -> bytes:
    """Every entry of the directory points to the first member: little in the file, much in memory."""
    data, k = bytearray(whole), 0
    while (k := data.find(b"PK\x01\x02", k)) >= 0:
        data[k + 42 : k + 46] = struct.pack("<I", 0)
        k += 4
    return bytes(data)


def twice(whole: bytes) -> bytes:
    out = io.BytesIO(whole)
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(archive.namelist()[0], archive.read(archive.namelist()[0]))
    return out.getvalue()


#: Runs code where a reader unpickles it.
PICKLE = b"cos\n_exit\n(I9\ntR."

CRAFTED = {
    "a terabyte": with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (125000000000,)}"),
    "more than can be counted": with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"),
    "nothing, in a large shape": with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0)}"),
    "negative shape": with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -8)}", bytes(64)),
    "objects": with_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", PICKLE),
    "records": with_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", bytes(8)),
    "code in the header": with_header("__import__('os')._exit(9)"),
    "deep header": with_header("(" * 5000),
    "oversized header": with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}" + " " * 200_000),
    "no header": lambda whole: rebuilt(whole, lambda members: {**members, next(iter(members)): b""}),
    "no member": lambda whole: rebuilt(whole, lambda members: {}),
    "a member less": lambda whole: rebuilt(whole, lambda members: dict(list(members.items())[1:])),
    "a member more": lambda whole: rebuilt(whole, lambda members: {**members, "x.npy": next(iter(members.values()))}),
    "another name": lambda whole: rebuilt(whole, lambda members: {f"{name}.npy": data for name, data in members.items()}),
    "compressed": deflated,
    "encrypted": encrypted,
    "overlapping": overlapping,
    "twice": twice,
    "a pickle": lambda whole: PICKLE,
    "empty": lambda whole: b"",
    "text": lambda whole: b"theta = 1",
}  # fmt: skip


@pytest.mark.parametrize("craft", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_file_is_refused(kept, craft):
    path, whole, read, _ = kept
    path.write_bytes(craft(whole))
    try:
        with pytest.raises(ValueError, match=r"^.+$"):
            read(path)
    finally:
        path.write_bytes(whole)


def test_what_can_be_accepted_is(kept):
    """The same members in a file that was made anew: the refusals above are not those of every file."""
    path, whole, read, before = kept
    path.write_bytes(rebuilt(whole, dict))
    assert content(read(path)) == before
    path.write_bytes(whole)

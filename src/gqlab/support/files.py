"""Files: they appear whole or not at all, and what is read is what was written.

Arrays are kept as ``.npz`` files, not compressed, with a digest of their content. Reading one never runs code and takes
no more memory than the file is long; whatever a damaged or crafted file holds, it gets a ``ValueError``.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import json
import math
import os
import secrets
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

#: How files are locked; where they cannot be, half-written ones are known by their age.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

#: The member that holds the digest of the others.
DIGEST = "digest"

#: Seconds after which a half-written file is nobody's any more, where files cannot be locked.
STALE = 600

#: What an array in a file may hold: truth values, numbers and text.
KINDS = "biufU"


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """A digest of names, types, shapes and values."""
    whole = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        whole.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``arrays`` and their digest as an ``.npz`` file, whole."""
    content = {**arrays, DIGEST: np.array(digest(arrays))}
    write_whole(path, lambda file: np.savez(file, **content))  # type: ignore[arg-type]


def read_arrays(path: str | os.PathLike[str], *, sealed: bool = True) -> dict[str, NDArray[Any]]:
    """What :func:`write_arrays` wrote; ``ValueError`` for everything else that can be in a file.

    With ``sealed=False`` a file without a digest is read too.
    """
    with open(path, "rb") as file:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, of a header that it repairs
                content = {name: _array(data) for name, data in _members(file)}
            seal = content.pop(DIGEST, None)
            if (seal is None and sealed) or (seal is not None and str(seal) != digest(content)):
                raise ValueError("its content is not what was written")
        except Exception as error:  # zipfile and NumPy raise a dozen kinds
            raise ValueError(one_line(error)) from None
    return content


def read_array(path: str | os.PathLike[str], name: str) -> NDArray[Any]:
    """One array of a file, without the others; the seal of all is not looked at."""
    with open(path, "rb") as file:
        try:
            return next(_array(data) for found, data in _members(file) if found == name)
        except StopIteration:
            raise ValueError(f"it has no {name!r}") from None
        except Exception as error:
            raise ValueError(one_line(error)) from None


def _members(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The members of a zip file with their bytes. None is compressed: they hold no more than the file."""
    left = os.fstat(file.fileno()).st_size
    names: set[str] = set()
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            left -= member.file_size
            if member.compress_type != zipfile.ZIP_STORED or left < 0 or member.filename in names:
                raise ValueError(f"{member.filename!r} is not an array of its own")
            names.add(member.filename)
            yield member.filename.removesuffix(".npy"), archive.read(member)


def _array(data: bytes) -> NDArray[Any]:
    """The array of an ``.npy`` file; its header may not claim more than there is."""
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    count = math.prod(shape)
    if dtype.kind not in KINDS or min(shape, default=0) < 0 or count * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of {dtype}{shape} in {len(data)} bytes")
    flat: NDArray[Any] = np.frombuffer(data, dtype, count, file.tell()).copy() if count else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def one_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


# --- Whole or not at all --------------------------------------------------------------------------------------------


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, new: bool = False) -> None:
    """``write`` into a temporary file beside ``path``, then put it in place in one step.

    What a process that was killed has left of the same file is removed. With ``new`` a file that is there stays, and
    gets a ``FileExistsError``, where the file system has links; where it has none the last one stays.
    """
    clear_parts(path.parent, path.name)
    temporary, file = _open_part(path)
    try:
        with file:
            write(file)
            file.flush()
            if fcntl is None:
                file.close()  # such systems do not rename an open file
            if not new or not _link(temporary, path):
                os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _link(temporary: Path, path: Path) -> bool:
    """Put a file in place where none is; False where the file system has no links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        return False
    temporary.unlink()
    return True


def _open_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside ``path``, locked as long as it is open: nobody takes it for left behind."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
        file = open(part, "xb")  # noqa: SIM115 - handed to the caller
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        if part.exists():  # else it was cleared away before it was locked
            return part, file
        file.close()


@contextlib.contextmanager
def token(folder: Path) -> Iterator[str]:
    """The name of a new file that is in a folder as long as this is open: who finds it there sees the very same folder.

    One that a killed process left is cleared away with its half-written files.
    """
    part, file = _open_part(folder / "token")
    try:
        with file:
            yield part.name
    finally:
        part.unlink(missing_ok=True)


def clear_parts(folder: Path, name: str | None = None) -> None:
    """Remove the half-written files, of ``name`` or of all, that processes which are gone left in a folder."""
    for part in folder.glob(f".{'*' if name is None else glob.escape(name)}.*.part"):
        with contextlib.suppress(OSError), open(part, "rb") as file:  # it may be finished or removed by now
            if not _is_held(file):
                part.unlink()


def _is_held(file: BinaryIO) -> bool:
    """Whether somebody is still writing this file; if not, it is ours from here on."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        pass
    return time.time() - os.fstat(file.fileno()).st_mtime < STALE


def check_writable(folder: Path) -> None:
    """``ValueError`` where nothing can be written; what killed processes have left there is removed."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        clear_parts(folder)
        part, file = _open_part(folder / "check")
        file.close()
        part.unlink()


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """``ValueError`` with the reason where the disk is full, or something else keeps what is done here from it."""
    try:
        yield
    except OSError as error:  # NumPy's own have no number, and so no strerror
        raise ValueError(f"cannot write to the folder {folder}: {error.strerror or one_line(error)}") from None

"""Files: they appear whole or not at all, and what is read is what was written.

Arrays are kept as ``.npz`` files, not compressed, with a digest of their content. Reading one never runs code and takes
no more memory than the size of the file; a damaged or crafted file causes a ``ValueError``, whatever it holds.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import io
import json
import math
import os
import secrets
import stat
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

#: The module that locks files; without it, half-written files are recognised by their age.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

#: The member that holds the digest of the others.
DIGEST = "digest"

#: Seconds after which a half-written file counts as abandoned, where files cannot be locked.
STALE = 600

#: The kinds of arrays in files: booleans, numbers and text.
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


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file, open for reading. A pipe in its place gets a ``ValueError``: reading it could wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise ValueError(f"{os.fspath(path)} is a pipe or a device, expected a file")


def read_arrays(path: str | os.PathLike[str], *, sealed: bool = True) -> dict[str, NDArray[Any]]:
    """What :func:`write_arrays` wrote; ``ValueError`` for everything else that can be in a file.

    With ``sealed=False`` a file without a digest is read too.
    """
    with open_regular(path) as file:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy warns of a header that it repairs
                content = {name: _array(data) for name, data in _members(file)}
            seal = content.pop(DIGEST, None)
            if (seal is None and sealed) or (seal is not None and str(seal) != digest(content)):
                raise ValueError("its content is not what was written")
        except Exception as error:  # zipfile and NumPy raise a dozen kinds of errors
            raise ValueError(one_line(error)) from None
    return content


def read_array(path: str | os.PathLike[str], name: str) -> NDArray[Any]:
    """One array of a file, without reading the others; the digest is not checked."""
    with open_regular(path) as file:
        try:
            return next(_array(data) for found, data in _members(file) if found == name)
        except StopIteration:
            raise ValueError(f"it has no {name!r}") from None
        except Exception as error:
            raise ValueError(one_line(error)) from None


def _members(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The members of a zip file with their bytes. None may be compressed: they are no larger than the file."""
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
    """The array of an ``.npy`` file; its header may not claim more data than there is."""
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    count = math.prod(shape)
    if dtype.kind not in KINDS or min(shape, default=0) < 0 or count * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of {dtype}{shape} in {len(data)} bytes")
    flat: NDArray[Any] = np.frombuffer(data, dtype, count, file.tell()).copy() if count else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def one_line(error: BaseException) -> str:
    """The message of an exception, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """What goes wrong while a file is made sense of becomes one ``ValueError`` that begins with its name."""
    name = os.fspath(path)
    try:
        yield
    except ValueError as error:
        raise ValueError(one_line(error) if str(error).startswith(name) else f"{name}: {one_line(error)}") from None
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{name} is damaged ({type(error).__name__}: {one_line(error)})") from None


# --- Whole or not at all --------------------------------------------------------------------------------------------


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, new: bool = False) -> None:
    """``write`` into a temporary file beside ``path``, then put it in place in one step.

    Leftovers of the same file from a process that was killed are removed. With ``new`` an existing file is kept, with a
    ``FileExistsError``, if the file system has links; if it has none, the last writer wins.
    """
    clear_parts(path.parent, path.name)
    temporary, file = _open_part(path)
    try:
        with file:
            write(file)
            file.flush()
            if fcntl is None:
                file.close()  # such systems cannot rename an open file
            if not new or not _link(temporary, path):
                os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _link(temporary: Path, path: Path) -> bool:
    """Put a file in place unless one exists; False if the file system has no links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        return False
    temporary.unlink()
    return True


def _open_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside ``path``, locked while it is open, so that no process takes it for abandoned."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
        file = open(part, "xb")  # noqa: SIM115 - handed to the caller
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        if part.exists():  # otherwise it was removed before it was locked
            return part, file
        file.close()


@contextlib.contextmanager
def token(folder: Path) -> Iterator[str]:
    """The name of a new file that exists in a folder while this is open: whoever finds it sees the same folder.

    One that a killed process left is removed together with its half-written files.
    """
    part, file = _open_part(folder / "token")
    try:
        with file:
            yield part.name
    finally:
        part.unlink(missing_ok=True)


def clear_parts(folder: Path, name: str | None = None) -> None:
    """Remove the half-written files, of ``name`` or of all, that dead processes left in a folder."""
    for part in folder.glob(f".{'*' if name is None else glob.escape(name)}.*.part"):
        with contextlib.suppress(OSError), open(part, "rb") as file:  # it may be finished or removed by now
            if not _is_held(file):
                part.unlink()


def _is_held(file: BinaryIO) -> bool:
    """Whether a process is still writing this file; if not, this one now holds the lock."""
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
    """``ValueError`` if nothing can be written; what killed processes left there is removed."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        clear_parts(folder)
        part, file = _open_part(folder / "check")
        file.close()
        part.unlink()


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """``ValueError`` with the reason if writing fails, because the disk is full or for any other reason."""
    try:
        yield
    except OSError as error:  # errors that NumPy raises have no errno, and so no strerror
        raise ValueError(f"cannot write to the folder {folder}: {error.strerror or one_line(error)}") from None

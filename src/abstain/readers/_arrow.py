"""What an engine hands over as a stream of Arrow, a piece of the table at a time, read where it lies in memory.

It needs no package of Arrow: the stream is a table of C functions, and columns of numbers are plain arrays.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class Gaps(Exception):  # noqa: N818  (a finding: whoever asked reads the table in another way)
    """A column has rows without a value, or the stream broke off."""


class _Array(ctypes.Structure):
    pass


_Array._fields_ = (
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
)


class _ArrowStream(ctypes.Structure):
    _fields_: ClassVar[Any] = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def pieces(capsule: Any, sizes: tuple[int, ...]) -> Iterator[tuple[int, list[int]]]:
    """Yield how many rows a piece has, and where each of its columns of numbers begins, until the next is asked for.

    Args:
        capsule: the stream.
        sizes: how many bytes a number of each column has.
    """
    stream = _ArrowStream.from_address(_pointer(capsule, b"arrow_array_stream"))
    while True:
        piece = _Array()
        if stream.get_next(ctypes.addressof(stream), ctypes.byref(piece)):
            raise Gaps
        if not piece.release:
            return
        try:
            columns = [piece.children[place].contents for place in range(len(sizes))]
            if any(column.null_count for column in columns):
                raise Gaps
            yield (
                piece.length,
                [
                    (column.buffers[1] or 0) + (piece.offset + column.offset) * size
                    for column, size in zip(columns, sizes, strict=True)
                ],
            )
        finally:
            piece.release(ctypes.byref(piece))

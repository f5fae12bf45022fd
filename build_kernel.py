"""Compile the kernel, one shared library, once per level of the processor.

`hatch_build.py` calls `build` whenever the package is built or installed, also as an editable install; by hand it is
``python build_kernel.py``, and with ``--sanitize`` the library watches its own memory. Needs Python and a C compiler:
the one named by ``CC``, else cc, gcc or clang.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["ABI", "LIBRARY", "SOURCE", "CompilerError", "build", "levels", "remove", "seal_of"]

SOURCE = Path(__file__).parent / "src" / "abstain" / "resampling" / "_kernel.c"
LIBRARY = SOURCE.with_name("libabstain" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so"))

# What the source calls its interface.
ABI = 1

# Never -ffast-math, and no fused operations: the same numbers on every level and every machine.
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-Wall", "-Wextra")
# Watched code takes minutes to optimize in full.
SANITIZERS = (
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)


class CompilerError(Exception):
    """There is no compiler, or it failed; the message says which."""


def levels() -> dict[str, tuple[str, ...]]:
    """Return the levels that are compiled, lowest first: the suffix of their names, and their flags."""
    found: dict[str, tuple[str, ...]] = {"": ()}
    if platform.machine().lower() in ("x86_64", "amd64"):
        found |= {
            "_avx2": ("-mavx2",),
            "_avx512": ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mprefer-vector-width=512"),
        }
    return found


def build(library: Path = LIBRARY, *, sanitize: bool = False) -> Path:
    """Compile the kernel into a library and return where it is; a `CompilerError` where that cannot be done."""
    compiler = _compiler()
    flags = [*FLAGS, *(SANITIZERS if sanitize else ()), *([] if sys.platform == "win32" else ["-fPIC"])]
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for suffix, level in levels().items():
            objects.append(str(Path(folder) / f"kernel{suffix}.o"))
            named = [f"-DLEVEL={suffix}"] if suffix else [f'-DSOURCE_HASH="{digest}"']
            _run([*compiler, *flags, *level, *named, "-c", str(SOURCE), "-o", objects[-1]])
        made = Path(folder) / library.name
        _run([*compiler, *(SANITIZERS if sanitize else ()), "-shared", *objects, "-o", str(made)])
        content = made.read_bytes()
    _put(library, content)
    _put(seal_of(library), f"{ABI} {digest} {hashlib.sha256(content).hexdigest()}".encode("ascii"))
    return library


def seal_of(library: Path) -> Path:
    """Return the file that says what a library was built from, and what it must hold."""
    return library.with_name(library.name + ".seal")


def remove(library: Path = LIBRARY) -> None:
    """Take a library away."""
    for path in (library, seal_of(library)):
        path.unlink(missing_ok=True)


def _put(path: Path, content: bytes) -> None:
    """Write a file that appears at once and whole, also where an older one is in use."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)


def _compiler() -> list[str]:
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise CompilerError("there is no C compiler (cc, gcc or clang, or the one that CC names)")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise CompilerError(f"the C compiler {command[0]} cannot be run ({problem.strerror})") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "it gave no reason").splitlines()
        reason = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise CompilerError(f"the C compiler failed: {reason}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sanitize", action="store_true", help="watch memory and undefined behaviour")
    parser.add_argument("--output", type=Path, default=LIBRARY, help="where the library goes")
    asked = parser.parse_args()
    try:
        print(build(asked.output, sanitize=asked.sanitize))
    except CompilerError as problem:
        sys.exit(f"error: {problem}")

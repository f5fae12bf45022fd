"""Compile the kernel into one shared library that contains a version for each processor level.

`hatch_build.py` calls `build` whenever the package is built or installed, also as an editable install. To compile by
hand, run ``python build_kernel.py``; ``--sanitize`` adds checks of memory accesses. Requires a C compiler: the one that
the environment variable ``CC`` names. Default: cc, gcc or clang.
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

# The version of the interface, as in the C source.
ABI = 1

# No -ffast-math and no fused operations, so that every level and every machine gives the same numbers.
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-Wall", "-Wextra")
# With sanitizers, full optimization takes minutes.
SANITIZERS = (
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)


class CompilerError(Exception):
    """There is no compiler, or the compiler failed."""


def levels() -> dict[str, tuple[str, ...]]:
    """Return the suffix and the compiler flags of each processor level, lowest level first."""
    flags: dict[str, tuple[str, ...]] = {"": ()}
    if platform.machine().lower() in ("x86_64", "amd64"):
        flags |= {
            "_avx2": ("-mavx2",),
            "_avx512": ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mprefer-vector-width=512"),
        }
    return flags


def build(library: Path = LIBRARY, *, sanitize: bool = False) -> Path:
    """Compile the kernel into a library and return its path; raise `CompilerError` if that fails."""
    compiler = _compiler()
    flags = [*FLAGS, *(SANITIZERS if sanitize else ()), *([] if sys.platform == "win32" else ["-fPIC"])]
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for suffix, level in levels().items():
            objects.append(str(Path(folder) / f"kernel{suffix}.o"))
            definition = [f"-DLEVEL={suffix}"] if suffix else [f'-DSOURCE_HASH="{digest}"']
            _run([*compiler, *flags, *level, *definition, "-c", str(SOURCE), "-o", objects[-1]])
        linked = Path(folder) / library.name
        _run([*compiler, *(SANITIZERS if sanitize else ()), "-shared", *objects, "-o", str(linked)])
        content = linked.read_bytes()
    _replace_file(library, content)
    _replace_file(seal_of(library), f"{ABI} {digest} {hashlib.sha256(content).hexdigest()}".encode("ascii"))
    return library


def seal_of(library: Path) -> Path:
    """Return the path of the file with the interface version and the hashes of a library and its source."""
    return library.with_name(library.name + ".seal")


def remove(library: Path = LIBRARY) -> None:
    """Delete a library and its seal."""
    for path in (library, seal_of(library)):
        path.unlink(missing_ok=True)


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically, even if an older version is in use."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def _compiler() -> list[str]:
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise CompilerError("there is no C compiler; install cc, gcc or clang, or name one in CC")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise CompilerError(f"the C compiler {command[0]} cannot be run ({problem.strerror})") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
        reason = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise CompilerError(f"the C compiler failed: {reason}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sanitize", action="store_true", help="detect memory errors and undefined behaviour"
    )
    parser.add_argument("--output", type=Path, default=LIBRARY, help="path of the library")
    arguments = parser.parse_args()
    try:
        print(build(arguments.output, sanitize=arguments.sanitize))
    except CompilerError as problem:
        sys.exit(f"error: {problem}")

"""The build hook, which compiles the kernel into the wheel.

The environment variable ``ABSTAIN_KERNEL`` has the values ``auto``, ``require`` and ``skip``. Default: ``auto``, which
compiles the kernel if it can; without it, the package uses numpy. ``require`` fails if the kernel cannot be compiled,
and ``skip`` does not compile it. ``auto`` ignores only a missing or failing compiler: any other error fails the build.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from build_kernel import LIBRARY, CompilerError, build, remove, seal_of

CHOICES = ("auto", "require", "skip")


class KernelHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles the kernel whenever a wheel is built, also for an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile the kernel before files are packed, and set the platform tag of the wheel."""
        choice = os.environ.get("ABSTAIN_KERNEL") or "auto"
        if choice not in CHOICES:
            sys.exit(f"error: ABSTAIN_KERNEL must be one of {', '.join(CHOICES)}, got {choice!r}")
        remove()
        if choice == "skip":
            return
        try:
            build()
        except CompilerError as problem:
            if choice == "require":
                sys.exit(f"error: ABSTAIN_KERNEL is require, but {problem}")
            self.app.display_warning(f"{problem}; abstain will use numpy, which is slower")
            return
        # The library does not use Python's C API, so one wheel per platform supports every Python version.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        for path in (LIBRARY, seal_of(LIBRARY)):
            build_data["artifacts"].append(f"src/abstain/resampling/{path.name}")

"""The build hook: compile the kernel into the wheel, or leave it out.

``ABSTAIN_KERNEL`` says what is to be done: ``auto`` (when left out) compiles where there is a compiler that can, and
else the package weighs with numpy; ``require`` fails without the compiled kernel; ``skip`` leaves it out. Only the
compiler's absence or failure falls back: any other defect of the build is one.
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
    """Compiles the kernel whenever a wheel is made, also one that only points to the sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile before anything is packed, and name the platform where that was done."""
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
            self.app.display_warning(f"{problem}; abstain will weigh with numpy")
            return
        # The library needs no Python, only a platform: one wheel serves every version.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        for path in (LIBRARY, seal_of(LIBRARY)):
            build_data["artifacts"].append(f"src/abstain/resampling/{path.name}")

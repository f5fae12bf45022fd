"""`python -m abstain` and the command `abstain`: nothing heavy is imported before the process is prepared."""

from __future__ import annotations

from abstain._process import leave, prepare, stop_code


def main() -> None:
    """Run the command line, and exit the process."""
    try:
        prepare()
        from abstain.cli import main as run_command_line  # noqa: PLC0415

        run_command_line()
    except BaseException as end:
        code = stop_code()
        if code is None:
            raise
        # A signal before or after the command ran has not been turned into an exit code yet.
        leave(end.code if isinstance(end, SystemExit) and isinstance(end.code, int) else code)


if __name__ == "__main__":
    main()

"""`python -m abstain` and the command `abstain`: nothing heavy is imported before the process is prepared."""

from __future__ import annotations

from abstain import _process


def main() -> None:
    """Run the command line in a process of its own."""
    try:
        _process.prepare()
        from abstain import cli  # noqa: PLC0415

        cli.main()
    except BaseException as end:
        code = _process.stop_code()
        if code is None:
            raise
        # A signal before or after the verb ran has not been turned into an exit code yet.
        _process.leave(end.code if isinstance(end, SystemExit) and isinstance(end.code, int) else code)


if __name__ == "__main__":
    main()

"""`python -m abstain` and the command `abstain`: nothing heavy is imported before the process is prepared."""

from __future__ import annotations

from abstain import _process


def main() -> None:
    """Run the command line as a process of its own."""
    try:
        _process.prepare()
        from abstain import cli  # noqa: PLC0415

        cli.main()
    except BaseException as end:
        code = _process.stop_code()
        if code is None:
            raise
        # A stop before or after the verb, where nothing has begun or all is done, has no other exit code yet.
        _process.leave(end.code if isinstance(end, SystemExit) and isinstance(end.code, int) else code)


if __name__ == "__main__":
    main()

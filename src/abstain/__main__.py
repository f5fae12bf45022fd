"""`python -m abstain` and the command `abstain`: nothing heavy is imported before the process is prepared."""

from __future__ import annotations

import sys

from abstain import _process


def main() -> None:
    """Run the command line as a process of its own."""
    try:
        _process.prepare()
        from abstain import cli  # noqa: PLC0415

        cli.main()
    except BaseException:
        # A stop before or after the verb, where nothing has begun or all is done.
        code = _process.stop_code()
        if code is None:
            raise
        _process.ignore_stops()
        sys.exit(code)


if __name__ == "__main__":
    main()

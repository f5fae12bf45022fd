"""`python -m abstain` is `abstain`."""

from abstain.cli import main

main()

"""`python -m headstream` is the command `headstream`."""

from flows.command_line import main

main()

"""`python -m headstream` is the command `headstream`."""

from headstream.flows.command_line import main

main()

"""The two ways a command can end badly; the command line turns each into one line and an exit code."""


class UserError(Exception):
    """The request was wrong (exit code 2): what must hold, what came, what to do, in one line."""


class WorkError(Exception):
    """The work failed (exit code 1): what failed, what is known of the cause, what to do, in one line."""

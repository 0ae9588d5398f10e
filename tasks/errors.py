"""The two ways a command can end badly; the command line turns each into one line and an exit code."""


class UserError(Exception):
    """What was asked for is wrong (exit code 2); says in one line what must hold, what came, what to do."""


class WorkError(Exception):
    """Work failed (exit code 1); says in one line what failed, what is known of the cause, what to do."""


class TextChanged(WorkError):
    """Files of the corpus changed while they were read."""

"""The two ways a command can end badly; the command line turns each into one line and an exit code."""


class UserError(Exception):
    """A mistake in what the user asked for (exit code 2). One line says what is wrong and what to do."""


class WorkError(Exception):
    """Work failed (exit code 1); says in one line what failed, what is known of the cause, what to do."""


class TextChanged(WorkError):
    """Files of the corpus changed while they were read."""

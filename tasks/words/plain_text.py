"""Text that is safe to show on one line of a terminal."""


def terminal_safe(text: str) -> str:
    r"""Text with its invisible characters (control codes, reordering marks) spelled out, like `\x00`."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)

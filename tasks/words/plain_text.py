"""Text that is safe to show on one line of a terminal."""


def terminal_safe(text: str) -> str:
    r"""Text with whatever has no shape of its own, steers terminals or reorders other text spelled out, like `\x00`."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)

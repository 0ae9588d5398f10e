"""Opens pages in a browser, where there is a screen."""

import os
import sys
import webbrowser


def open_in_browser(address: str) -> None:
    """Open an address in a new tab; nothing without a screen, where a text browser would take over the terminal."""
    if sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        webbrowser.open_new_tab(address)

"""Commands on a terminal of their own, as a person runs them."""

import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence

import psutil
from waiting import until

CTRL_C = b"\x03"


def _like_a_shell() -> None:
    """Give a new process its terminal, and signals that are not ignored, as they are below nohup."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


class Terminal:
    """A pseudo-terminal, and a command that runs in its foreground."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], lines: int = 24, columns: int = 80
    ) -> None:
        self._keyboard, inside = os.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        settings = termios.tcgetattr(inside)
        settings[3] |= termios.NOFLSH  # else Ctrl-C throws away what the reader, below, has not read yet
        termios.tcsetattr(inside, termios.TCSANOW, settings)
        self.process = subprocess.Popen(
            command,
            env={**environment, "TERM": "xterm-256color"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=_like_a_shell,
        )
        os.close(inside)
        self.family: list[psutil.Process] = []
        self.seconds = 0.0
        """From the first interruption to the command's end."""
        self._interrupted: float | None = None
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._keyboard, 10_000):
                self._shown += data
        except OSError:  # nobody has it open any more
            pass

    @property
    def shown(self) -> str:
        """All that was written to the terminal so far, control sequences included."""
        return self._shown.decode(errors="replace")

    def wait_for(self, words: str, seconds: float = 60.0) -> None:
        """Wait until words are shown."""
        until(lambda: words in self.shown or self.process.poll() is not None, seconds)
        assert words in self.shown, self.shown

    def interrupt(self, how: str) -> None:
        """Ctrl-C, SIGTERM to the command, or SIGHUP to all, as when the window is closed."""
        if self._interrupted is None:
            command = psutil.Process(self.process.pid)
            self.family = [command, *command.children(recursive=True)]
            self._interrupted = time.monotonic()
        if how == "Ctrl-C":
            os.write(self._keyboard, CTRL_C)
        elif how == "SIGTERM":
            self.process.send_signal(signal.SIGTERM)
        else:
            os.killpg(self.process.pid, signal.SIGHUP)

    def ended(self, seconds: float = 60.0) -> int:
        """Wait for the end of the command and of all that it had started when it was interrupted; its exit code."""
        code = self.process.wait(seconds)
        self.seconds = time.monotonic() - (self._interrupted or time.monotonic())
        left = psutil.wait_procs(self.family, timeout=seconds)[1]
        assert not [process.cmdline() for process in left]
        self._reader.join(10)
        return code

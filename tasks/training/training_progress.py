"""The progress of a training run, in its own terms and in those of every step."""

from dataclasses import dataclass

from headstream.tasks.progress import State

STATE = "state.safetensors"  # from which another run resumes, in the folder RESUME


@dataclass(frozen=True)
class Progress:
    """The progress of a training run, and the step from which another would resume it."""

    step: int
    n_steps: int
    saved_step: int
    loss_nats: float | None
    tokens_per_second: float | None
    compiling: bool

    @property
    def fraction(self) -> float:
        """The fraction done."""
        return self.step / self.n_steps

    @property
    def kept(self) -> float:
        """The fraction from which another run would resume."""
        return self.saved_step / self.n_steps

    @property
    def state(self) -> State:
        """Compiling, or working."""
        return "compiling" if self.compiling else ""

    @property
    def text(self) -> str:
        """Loss and speed, as far as they are known."""
        if self.compiling:
            return ""
        loss = "" if self.loss_nats is None else f"loss {self.loss_nats:.3f} nats"
        speed = "" if self.tokens_per_second is None else f"{self.tokens_per_second:,.0f} tokens/s"
        return ", ".join(filter(None, (loss, speed)))

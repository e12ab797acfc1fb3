"""Exponential backoff with full control over randomness."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays that double from `initial_s` to `limit_s`.

    `jitter` spreads them by up to that share.
    """

    initial_s: float
    limit_s: float
    factor: float = 2.0
    jitter: float = 0.0

    def delay_s(self, failures: int, rng: random.Random | None = None) -> float:
        """Return the delay after `failures` failures in a row (1 is the first).

        Monotone without jitter.
        """
        exponent = min(max(failures, 1) - 1, 64)
        delay = min(self.initial_s * self.factor**exponent, self.limit_s)
        return delay if rng is None else delay * (1 + self.jitter * rng.random())

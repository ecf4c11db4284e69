"""The first refusal of a case: even if the exception is caught, nothing may be called after it."""

from collections.abc import Callable

from msgspec import Struct

from greenroom.errors import Refusal, ToolRefused


class Refusals(Struct, eq=False):
    """The first refusal of a case. Once set, everything after it is refused."""

    is_set: bool = False
    refusal: Refusal | None = None
    on_set: Callable[[], None] | None = None
    _over: str = ""

    def set(self, refusal: Refusal) -> Refusal:
        """Remember the first refusal, call `on_set`, and return it to be raised."""
        if not self.is_set:
            self.refusal = refusal
            self.is_set = True
            if self.on_set is not None:
                self.on_set()
        return refusal

    def reset(self) -> None:
        """Begin again: the refusal is reported, and does not affect the next work."""
        self.is_set, self.refusal = False, None

    def close(self, case_id: str) -> None:
        """Refuse all further calls: the trial is over, and work left behind must not act after the verdict."""
        self._over = case_id
        self.is_set = True

    def check(self) -> None:
        """Refuse everything after the first refusal, and after the trial."""
        if self.is_set:
            raise self.refusal or ToolRefused(
                f"the trial of case {self._over!r} is over; no further call is allowed."
            )

"""How trials are run, whoever runs them: through Ray, or one by one in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol, TypeVar

from nas.config.request import Resources
from workers.store import Store
from workers.trainable import TrialSpec

P = ParamSpec("P")
R = TypeVar("R")


class TrialRunner(Protocol):
    """Runs trials and single calls with a trial's resources."""

    def check(self, resources: Resources) -> None:
        """Whether a trial can ever be placed.

        Raises:
            InvalidInput: it asks for more than there is.
        """

    def call(self, resources: Resources, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run an importable function where a trial would run, and wait for it.

        Raises:
            StopRequested: the search was asked to stop meanwhile.
        """

    def run(self, specs: Sequence[TrialSpec], store: Store) -> dict[str, str]:
        """Run trials to their end; every report goes to the store.

        Returns:
            Why trials failed, by `str(key)`; empty when all ended well.

        Raises:
            StopRequested: the search was asked to stop; what was acknowledged stays.
            SearchFailed: a step that ran again gave other numbers.
        """

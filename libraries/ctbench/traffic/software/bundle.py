"""Several links as one port: what the generator has where a side of the DUT is a bond."""

from collections.abc import Sequence

import numpy as np

from ctbench.traffic.software.memif import MemifPort


class Bundle:
    """Offers the rings of all its links; frames of a flow always take the same one."""

    def __init__(self, links: Sequence[MemifPort]) -> None:
        self._links = tuple(links)
        # A ring's row holds this side's state of it: these copies are the only ones that are used.
        self.tx = np.concatenate([link.tx for link in links])
        self.rx = np.concatenate([link.rx for link in links])

    def dropped(self) -> int:
        """Frames that the generator itself lost since the last call."""
        return sum(link.dropped() for link in self._links)

    def check_link(self) -> None:
        """Raise `GeneratorError` when one of the links is gone."""
        for link in self._links:
            link.check_link()

    def close(self) -> None:
        """Let go of all links."""
        for link in self._links:
            link.close()


def bundle(links: Sequence[MemifPort]) -> MemifPort | Bundle:
    """One link as it is, several as one port."""
    return links[0] if len(links) == 1 else Bundle(links)

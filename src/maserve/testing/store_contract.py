"""What every `Store` must keep: inherit `StoreContract` and give it a `store` fixture.

The fixture gives an open, empty store on the fixture `clock`. It keeps `HISTORY_CHANGES` of its
history, or the class sets `history_changes` to what it keeps.
"""

from maserve.testing.store_cases import HISTORY_CHANGES
from maserve.testing.store_contract_deletes import StoreDeletes, StoreOwners
from maserve.testing.store_contract_reads import StoreReads
from maserve.testing.store_contract_watches import StoreWatches
from maserve.testing.store_contract_writes import StoreCreates, StoreUpdates

__all__ = ["HISTORY_CHANGES", "StoreContract"]


class StoreContract(
    StoreCreates, StoreUpdates, StoreDeletes, StoreOwners, StoreReads, StoreWatches
):
    """The whole suite."""

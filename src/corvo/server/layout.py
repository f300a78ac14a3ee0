"""Where things lie in a data directory.

Format:  data/LOCK     held by the one process that has the directory open
         data/wal/     segments of the log
         data/store/   RocksDB
         data/view/    SQLite, a projection that may be deleted while no server runs
         data/copies/  copies of the store while a backup runs; cleared at every start
         data/restore.partial/   a restore that did not finish; the server refuses to start
"""

from msgspec import Struct


class Layout(Struct, frozen=True):
    """The paths of one data directory."""

    directory: str

    @property
    def lock(self) -> str:
        return f"{self.directory}/LOCK"

    @property
    def wal(self) -> str:
        return f"{self.directory}/wal"

    @property
    def store(self) -> str:
        return f"{self.directory}/store"

    @property
    def view(self) -> str:
        return f"{self.directory}/view"

    @property
    def copies(self) -> str:
        return f"{self.directory}/copies"

    @property
    def partial(self) -> str:
        return f"{self.directory}/restore.partial"

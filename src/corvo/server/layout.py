"""Where things lie in a data directory.

Format:  data/LOCK     held by the one process that has the directory open
         data/wal/     segments of the log
         data/store/   RocksDB
         data/view/    SQLite, a projection that may be deleted while no server runs
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

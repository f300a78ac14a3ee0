"""python search.py UNTIL [--wait]: begin a search, or find the one that runs, and wait for it."""

import sys

from jobs import mersenne

handle = mersenne.enqueue(int(sys.argv[1]))
print(handle.id, "goes on" if handle.is_duplicate else "begins")
if "--wait" in sys.argv:
    print(*handle.result(timeout="5m"))
    print("attempts:", handle.refresh().attempt)

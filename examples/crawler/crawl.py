"""python crawl.py URL DEPTH: set the limit, and begin with one page."""

import sys

from jobs import LIMIT, app, crawl

# Ten requests a second and two at a time, over all workers and all queues; may be changed while
# they work.
app.client.set_limit(LIMIT, rate=10, period="1s", burst=1, maximum=2)
handle = crawl.enqueue(sys.argv[1], int(sys.argv[2]))
print(f"{handle.id}: {handle.result(timeout='1m')} pages to go")

"""`corvo top`: the server on a screen.

A user of the HTTP API like any other, through the SDK. It owns nothing and keeps nothing: what is
shown is the last answer, and whatever is done to jobs is one bulk call, most of which the server
can take back.

    source    every call, in one place          pacing    when to look again
    pulse     the look that feeds the overview  rates     rates and latencies from counters
    page      what the four pages share         table     draws the rows in sight only
    detail    one job, followed                 actions   retry, cancel, move, delete, undo

Invariant: one task looks at the open page and one at the overview, whatever is typed; each waits
twenty times as long as its last look took, so that `top` is never the load it shows.

Deliberately absent: any state that would have to be right. A server that goes away leaves its last
figures on the screen; when it is back, the next look replaces them.

Read first: `app.py`, then `table.py`.
"""

from corvo.cli.top.command import top

__all__ = ["top"]

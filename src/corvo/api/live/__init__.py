"""What happens, as it happens: one reader of the feed, and everybody who looks over its shoulder.

Owns the hub (`hub`: the one reader, woken by the engine, paced so that it never takes much of the
loop), the batches it shares out (`batch`: events rendered once for all streams), event streams
(`stream`), calls that wait for a job (`waits`), and figures counted from events (`figures`).

    engine ─▶ feed ─▶ hub ─┬▶ figures          counted always
                           ├▶ waits            woken by the job they wait for
                           └▶ ring of batches ─▶ streams, each at its own place

Invariants: nothing is queued per stream, a stream is a place in the shared ring; one that falls
out of the ring is told so and dropped; a stream gets every event after its place exactly once, also
across the change from stored to live events.

Deliberately absent: durable consumers with cursors of their own (the view and webhooks are those),
and any write. Called by `api.routes.live` and `api.app`. Read `hub.py`, then `stream.py`.
"""

"""How bytes get to a server and back: two ports and an adapter for each.

`ports` has the interfaces; `pooled` is the synchronous adapter over urllib3 and `loop` the
asynchronous one over aiohttp. Each is imported when a client first needs it. An adapter sends one
request to one address and never repeats it: what is repeated is decided by `protocol.exchange`.

Invariant: an adapter raises only `ConnectionFailedError` and its kinds, and says in `was_sent`
whether the server may have seen the request; when that is not known, it may have.

Anything with these methods can be given to a client: the testing kit serves calls in process.
"""

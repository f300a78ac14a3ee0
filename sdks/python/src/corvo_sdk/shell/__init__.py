"""The methods of the two clients: `blocking` is written, `awaiting` is made from it.

Each method hands a call of `protocol.endpoints` to `_run`. `generate` rewrites the modules of
`blocking` into those of `awaiting`; a test compares, so change the former and run `make sdk`.

What differs between the shells beyond that (sending, sleeping, streaming) is written twice, in
`client.py` and `aio.py`.
"""

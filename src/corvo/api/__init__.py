"""The edge: HTTP and JSON on one side, commands and outcomes on the other.

Owns the wire: every JSON shape (`wire`), what a text value means (`values`), the way from a request
to a command (`translate`, `work`) and from an outcome or a record to bytes (`render`, `views`), the
one table of error codes (`errors`), the handlers of the hot routes (`hot`) and the slow ones
(`routes`), and their composition (`app`).

Architecture invariant: nothing malformed reaches the engine. A value of the wrong type, shape or
size is refused here with 400 or 413 and the path of the field; what the machine refuses is a
question of state and comes back as a value. The same handler serves a hot route in both lanes.

Architecture invariant: payload, result and checkpoint pass through byte for byte. They are checked
(syntax, encoding, depth, size) but never decoded and written again, so big numbers survive.

Deliberately absent: sockets (they are `api.http`), rules about jobs (they are `machine`), storage,
log and keys. Read `wire.py`, then `translate.py`, then `hot.py`.
"""

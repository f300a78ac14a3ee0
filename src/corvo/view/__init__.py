"""The read side: a projection of jobs and events in SQLite, owned by a process of its own.

    core process                              view process
    sender ─── copies of records, events ───▶ follower ─▶ projection ─▶ SQLite
    client ─── query by name ───────────────▶ desk ─▶ queries ─▶ JSON bytes, forwarded as they are

Owns: the tables (`sql/schema.sql`), how records become rows (`rows`, `projection`), the messages
between the two processes (`messages`, `frames`), and the registry of queries (`queries`).

Invariants:

- Rows and the cursor that vouches for them are written in one transaction, so a kill at any moment
  leaves an exact prefix.
- What a row holds is a function of the record and of the events alone: following the feed and
  building anew from a checkpoint give the same tables.
- A query runs on a connection that can not write, in one snapshot, with a time budget.
- Nothing here is authoritative. A file that is damaged, of another version or of another history
  is thrown away and built anew.

Deliberately absent: writes of any kind to the store, and any look into the store but the feed; the
checkpoint a rebuild reads is opened by `server.view_process`. Read `follower` first.
"""

"""The slow routes: everything a person or a tool asks for, one module per resource.

Each module has a class bound to the engine whose `table()` names its paths, methods and operations.
An operation takes a `Call` (body, query, principal) and returns an `Answer`; what it cannot do it
raises as a `RequestError`.

Architecture invariant: every operation acts in the namespace of the call's principal.

Deliberately absent: rules about jobs and queues; a change is a command, and the machine decides.
Read `jobs.py` first.
"""

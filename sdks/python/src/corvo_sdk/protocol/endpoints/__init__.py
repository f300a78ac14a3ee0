"""One function per endpoint of the server: arguments in, a `Call` out.

Bodies are sent with `?strict=true`: a field that the server does not know is refused instead of
ignored, so that a guardrail is never lost in silence. A test compares what is made here with the
server's own description: every operation is made by exactly one function, listed in `making.MADE`.

Read first: `making.py`.
"""

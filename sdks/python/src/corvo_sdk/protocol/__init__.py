"""The protocol as values: what is asked, what an answer means, what to do when there is none.

Nothing here touches a socket, a clock or chance. `call` holds one request and how its answer is
read; `endpoints` has one function per endpoint of the server that makes such a call; `exchange` is
the state machine of one call over several servers: it says what to send where, how long to wait and
when to give up, and the two shells (`client`, `aio`) do as it says.

Read first: `exchange.py`.
"""

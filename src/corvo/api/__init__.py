"""The edge: what the outside world may say to Corvo, and how it is answered.

`http` owns the transport (sockets, HTTP/1.1, order, limits, drain) and knows nothing of jobs. Wire
types, routes and handlers are built on top of it and know nothing of sockets.

Deliberately absent: rules about jobs. Those are the machine's, behind the engine.
"""

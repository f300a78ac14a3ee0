"""The worker stream: jobs are pushed to workers that granted slots, reports come back in frames.

`spec/stream.md` is the protocol. A `Session` is one stream, pure of transport: decoded frames go
in, answers and pushes come out of its `Outlet`. Three transports share it and the items:

    websocket  ─┐
    grpc_server ┼─▶ Session ─▶ engine          streams: all sessions, resume, signals, drain
    connect    ─┴─▶ calls ───▶ engine          (unary calls only)

Invariant: jobs in flight of a queue set never exceed its slots.
Invariant: answers leave a session in the order its frames came, each frame answered exactly once.
Invariant: a job that was claimed for a session and could not be written goes back to its queue.

gRPC and protobuf are imported by `grpc_server` and by the first Connect call only.

Read first: `session`, then `streams`.
"""

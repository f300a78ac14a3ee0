"""What the protocol compiler made of proto/corvo/v1/worker.proto.

`make proto` writes it anew; a test compares the two. Nothing here is edited, linted or measured.
Imported by gRPC, and by the first Connect call: it brings protobuf along.
"""

"""Where it lies: the bytes of keys and values.

Owns the table of key families (`space.py`, which is enough to draw the disk), the order-preserving
encodings they are made of (`order.py`) and the versioned value codecs (`codec.py`).

Architecture invariant: keys sort bytewise in the order the machine wants to read them; every key of
a job, queue, lock or batch carries the namespace. Deliberately absent: reading and writing (that is
`machine`) and any engine (that is `storage`).
"""

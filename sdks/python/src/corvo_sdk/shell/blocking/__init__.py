"""Methods of `Client`, by subject.

One class for each part of the API; `Client` derives from all of them. A method makes its call
with `protocol.endpoints` and has it run; loops over pages are here too.
"""

# Made from shell/blocking/__init__.py by `make sdk`; change that one.
"""Methods of `AsyncClient`, by subject.

One class for each part of the API; `AsyncClient` derives from all of them. A method makes its call
with `protocol.endpoints` and has it run; loops over pages are here too.
"""

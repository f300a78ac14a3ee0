"""The figures Corvo is held to, each a function that measures and checks its own run.

`python -m bench` (or `make bench`) runs all of them; name some to run only those; `--quick` makes
every run tiny, which proves that the figures work and nothing about speed. README.md beside this
file says how to read them. Nothing here is shipped.

Read `run.py` first, then `servers.py` (what is measured) and `http_figures.py` (the main figures).
"""

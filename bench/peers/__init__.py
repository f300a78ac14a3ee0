"""The same no-op job on other people's queues, for a ratio within one run.

Each file holds what its system asks of an application and nothing else. They run in an environment
of their own (`make peers`), against a Redis server started for the run.
"""

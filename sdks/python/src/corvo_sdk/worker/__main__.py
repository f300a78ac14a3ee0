"""`python -m corvo_sdk.worker` is `corvo-worker`."""

import sys

from corvo_sdk.worker.command import main

if __name__ == "__main__":
    sys.exit(main())

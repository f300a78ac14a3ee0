"""The version of the distribution; its project file says the same, and a test compares."""

from typing import Final

VERSION: Final = "0.1.0"

"""`--rewrite` accepts what the machine says now; read the difference before committing it."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the answers into the scenarios")

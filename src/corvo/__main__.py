"""`python -m corvo` is the command `corvo`."""

from corvo.cli.main import main

if __name__ == "__main__":
    main()

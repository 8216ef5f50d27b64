"""`python -m gordan` is the command line."""

from gordan.cli import main

if __name__ == "__main__":
    main()

"""`python -m strads`: the command line."""

from strads.cli import main

if __name__ == "__main__":
    main()

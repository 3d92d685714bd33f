"""``python -m gqlab``: the command line."""

from gqlab.cli.main import main

if __name__ == "__main__":
    main()

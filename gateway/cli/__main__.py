"""``python -m gateway.cli``: the command line, without the installed script."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()

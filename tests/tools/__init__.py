"""Programs that make targets run: the documentation site and the picture of the README."""

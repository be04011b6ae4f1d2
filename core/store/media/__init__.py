"""Store the rows of files that people send."""

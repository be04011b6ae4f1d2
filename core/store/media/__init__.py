"""The rows of files that people send."""

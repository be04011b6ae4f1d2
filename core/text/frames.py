"""The first words of the frames around other people's text that the store also looks for."""

FILE_LEAD = "Contents of file"
"""Begins the frame with the text of a file. The file's number follows."""

"""Connections of other programs in the same home to the running gateway, such as `mneme chat`."""

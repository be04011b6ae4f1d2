"""Connects other programs in the same home, such as `mneme chat`, to the running gateway."""

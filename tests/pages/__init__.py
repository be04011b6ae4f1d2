"""The page in a real Chromium, by keyboard and mouse: `make pages`."""

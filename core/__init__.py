"""The agent and everything it thinks with; knows no platform."""

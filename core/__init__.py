"""Contains the agent, its memory and its tools. This package doesn't depend on any platform."""

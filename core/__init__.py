"""The agent, its memory and its tools. Nothing in this package depends on a platform."""

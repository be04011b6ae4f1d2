"""The rows of facts: how they are learned, closed, corrected and searched."""

"""Answers to questions without a model: quotes of what was said, the current statement first."""

"""Stores, decodes and finds the files that people send, and shows them to the model."""

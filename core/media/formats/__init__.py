"""Readers of file formats, one module for each library. Only the worker process imports them."""

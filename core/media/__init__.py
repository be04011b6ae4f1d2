"""Stores the files that people send by hash, decodes them, shows them to the model and
finds them.
"""

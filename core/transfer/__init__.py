"""Import and export conversations, and back up and copy stores.

Each import module reads a group of related formats, and yields records to store.
"""

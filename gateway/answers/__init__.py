"""The lines below an answer that name its sources, and answers that are sent as files."""

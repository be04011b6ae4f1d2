"""Store, decode and find the files that people send, and show them to the model."""

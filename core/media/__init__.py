"""Files that people send: kept by hash, decoded, shown to the model, and found again."""

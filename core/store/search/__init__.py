"""Read rows and text indexes for searches."""

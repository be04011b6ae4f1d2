"""Read the database for searches."""

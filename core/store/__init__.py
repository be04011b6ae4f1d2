"""Store all of Mneme's data in state.db: its tables and its text indexes."""

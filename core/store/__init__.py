"""Store everything that Mneme keeps in state.db: its tables and its text indexes."""

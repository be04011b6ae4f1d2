"""Who owns which rows: people, their accounts, and what ends when they lose access."""

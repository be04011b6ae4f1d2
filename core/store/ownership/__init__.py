"""Store people and their accounts, link accounts to one person, and remove access."""

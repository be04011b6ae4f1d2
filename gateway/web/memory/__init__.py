"""The page "Memory": facts, notes, skills and instructions with their sources and changes."""

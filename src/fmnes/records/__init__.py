"""What a search remembers, when it ends, and what it returns."""

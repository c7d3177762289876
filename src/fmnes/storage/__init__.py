"""A search on disk: one file with its state, a journal of the values since, and a lock."""

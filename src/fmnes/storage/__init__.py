"""A search on disk: a checkpoint with its state, a journal of the values since, and a lock."""

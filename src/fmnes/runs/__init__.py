"""The runs of a search: their schedule, their first generation, and candidates in flight."""

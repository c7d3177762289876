"""Constraints with values: how they are declared, and what a search does with them."""

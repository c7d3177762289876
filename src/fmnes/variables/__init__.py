"""Between the user's variables and the search's coordinates: bounds, integers, choices, names."""

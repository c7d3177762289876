"""Points from elsewhere: a start from data, and points that take part in a generation."""

"""What a caller passes in, checked and converted once, before the first evaluation."""

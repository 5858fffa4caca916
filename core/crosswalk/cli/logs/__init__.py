"""Recorded answers: where they are found, how each is mapped, stored and compared."""

"""The way back: the parts of earlier turns that a new request sends to its provider, and what is said of the others."""

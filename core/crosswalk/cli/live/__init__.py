"""The commands that ask a server: the exchange, the screen, and captures of it."""

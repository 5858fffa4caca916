"""Servers that refuse what the real API refuses: a table of rules for each provider, each with its public source."""

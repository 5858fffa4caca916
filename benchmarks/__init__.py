"""Benchmarks of Crosswalk against floors and peers."""

"""Crosswalk measured against floors and peers."""

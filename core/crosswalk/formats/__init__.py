"""The formats that clients speak, a module each: how its request is read, and how its answer is written."""

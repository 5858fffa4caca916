"""Four providers with invented wires, each correct, for the test that plants mistakes in them."""

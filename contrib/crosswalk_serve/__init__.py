"""A gateway: any client's form in, any provider out. Needs the extra ``serve``."""

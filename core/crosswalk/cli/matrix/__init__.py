"""The crosswalk of providers: which wire field becomes which canonical field, and how that is found out."""

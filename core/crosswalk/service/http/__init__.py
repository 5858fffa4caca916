"""HTTP: the transports over httpx2 and aiohttp, the time limits of their waits, and the redaction of credentials."""

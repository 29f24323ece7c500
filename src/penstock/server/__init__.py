"""The server: sessions, turns, sockets, settings. The only place with asyncio."""

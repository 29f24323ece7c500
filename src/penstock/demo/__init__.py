"""The main job in one go: a durable server, producers, a pipeline that is killed, and the accounts."""

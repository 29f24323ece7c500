"""The server as a process that others start and watch.

systemd    notifications to systemd, and its watchdog
daemon     a process in the background, and its pid file
"""

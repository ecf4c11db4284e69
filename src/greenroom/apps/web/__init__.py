"""The web page: runs, cases and comparisons in a browser, on this machine.

The server reads and children play: it never imports the author's code and never runs an agent. Whatever it
shows comes out of the store, so a run that was begun in a terminal, in pytest or by the page looks the same.
Every action is a command, and the page shows which.
"""

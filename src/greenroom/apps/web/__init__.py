"""The web page: runs, cases and comparisons in a browser, on this machine.

The server only reads; child processes run agents. It never imports the author's code and never runs an agent itself.
Whatever it shows comes from the store, so a run looks the same whether a terminal, pytest or the page started it.
Every action is a command, and the page shows which.
"""

"""The doors: command line, web and pytest. They wire the rooms together and hold no logic."""

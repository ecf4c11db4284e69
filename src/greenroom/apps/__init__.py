"""The entry points: command line, web page, A2A server, pytest plug-in, demo and starter project.

They wire the rooms together and hold no logic.
"""

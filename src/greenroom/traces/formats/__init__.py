"""The formats that traces and logs of other tools come in, a file each."""

"""The formats of traces and logs of other tools, one module each."""

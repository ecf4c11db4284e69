"""Worker processes on the nodes of a Ray cluster. Only `library` imports Ray.

One actor on a node, the relay, starts worker processes next to itself, the same kind that `--workers` starts, and
passes lines on. Trials do not run inside Ray's own processes, where they could give work to the cluster and so
bypass the fence.
"""

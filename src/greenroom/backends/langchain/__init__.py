"""The seams of LangChain's own classes, which stand without LangGraph too.

They import nothing but the class they wrap: they go in while the framework may be half loaded.
"""

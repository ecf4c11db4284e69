"""A report as one HTML file that needs nothing else: no network, no server, no foreign script.

Text from outside reaches the page in two ways only: escaped, or packed as data that the page's own
script puts in place as text. A content security policy refuses everything else.
"""

from greenroom.reports.html.page import render_html

__all__ = ["render_html"]

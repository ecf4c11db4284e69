"""What a reader of a run sees, as data, and the scripts that draw it.

The static report (`greenroom.reports.html`) packs the data of one run into a file with these scripts; the web
page serves both. `greenroom.reports.page.shapes` defines the data for both.
"""

"""The measurements of this project: accuracy, speed, coverage, training. Each measures, then renders.

A module here has a function that measures and returns frozen values, and one that renders them as Markdown. The
command line adds the header that says how a report was made. To add a measurement, write both and register a command in
`app/cli/bench.py`.
"""

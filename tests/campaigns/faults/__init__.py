"""The fault campaign: the real service, killed, frozen, starved, flooded, upgraded; then its audit is checked.

`python -m tests.campaigns.faults` runs it row by row. `rows.py` lists the rows, `mutants.py` the broken builds that the
rows must notice, `found.py` what they found so far, and `report.py` turns the results into docs/faults.md.
"""

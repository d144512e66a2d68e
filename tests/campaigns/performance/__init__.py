"""What `make bench` measures: each part is a command of its own, and its results are saved until it is run again.

python -m tests.campaigns.performance --out docs/performance.md               what is missing, then the report
python -m tests.campaigns.performance --only files --quick                    one part, shortened
"""

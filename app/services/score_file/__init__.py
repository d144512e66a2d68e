"""Scores a file of any length: in parts, on one or more processes or a cluster, and again from where a run was stopped.

`run` is the use case. `job` is what a worker is given, `parts` is what it does with a part, `workers` is where: in this
process, in others of this machine, or on a Dask cluster. `work_folder` holds the finished parts until the output is
complete.
"""

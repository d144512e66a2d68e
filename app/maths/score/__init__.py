"""The exact distribution of NS and of a diameter: probabilities, intervals and quantiles, without sampling.

`normalcy` is the score, `predictive` and `thresholds` are the diameter. Beneath them lie `hdi` and `distribution` for
the score turned to its positive side (`canonical_form`), and the numerical tools `quadrature` and `roots`. Answers take
all numbers together from `score_numbers`, one person from `score_one`: probabilities on one grid (`probabilities`),
intervals and quantiles from a table (`interval_table`).
"""

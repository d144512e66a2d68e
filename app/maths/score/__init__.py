"""The exact distribution of NS and of a diameter: probabilities, intervals and quantiles, without sampling.

`normalcy` is the score, `predictive` and `thresholds` are the diameter. Beneath them lie `hdi` and `distribution` for
the score turned to its positive side (`oriented`), and the numerical tools `quadrature` and `roots`.
"""

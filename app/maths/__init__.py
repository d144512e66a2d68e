"""The numbers: `gp` (kernels, sparse posterior), `score` (distribution of NS), `statistics`. NumPy and SciPy only.

No file, no clock, no logging, no global random state: everything comes in as an argument and goes out as a
frozen value. Arrays are float64 with their shape stated where they are declared.

Symbols, fixed once for all of the code:

    N   people                    D   covariates              M   inducing points
    X   [N, D] covariates         y   [N] diameters in mm     Z   [M, D] inducing inputs, standardised
    f1  latent mean of y          f2  latent log standard deviation of y
    m1, v1, m2, v2                posterior means and variances of f1 and f2 at a person (s = sqrt(v))
    NS  = (y - f1) / exp(f2)      the normalcy score, a random variable
    W2  width of the 95% HDI of NS at the diameter m1 + 2 exp(m2): what the context alone leaves open
"""

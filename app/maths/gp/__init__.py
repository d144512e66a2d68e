"""The trained Gaussian processes: kernels, the standardisation of a model and its sparse posterior."""

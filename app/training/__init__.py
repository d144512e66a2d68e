"""From a table of healthy people to a trained model: the only room that knows GPflow.

Here live the checks of a hospital's table, the simulated cohort, the recipes, the fit, its calibration on held-out
people and the gates of publication. Files are read and written elsewhere, and so is prediction: a fit ends in the
NumPy posterior of `app.maths`, proven equal to GPflow's own.

    fit       raw numbers in, posterior and record out      recipe            what to fit and how, as plain options
    stages    the stages in order, second attempts          lbfgs             full-batch L-BFGS
    inducing  where the inducing points start               paper_optimiser   natural gradient and Adam
    prior     kernels and the priors on them                svgp, likelihood  the model as GPflow knows it
    export    from GPflow to NumPy, and what to prove it by  collapsed, noise  the same with q(f1) at its optimum

Importing this package imports no TensorFlow; importing `fit` does, by way of `stack`.

To add a recipe: a classmethod of `Recipe` with its evidence. To add an option: a field of `Recipe` (it then stands
on every card), read where it matters. A new kernel needs its shape in `app.maths.gp.kernels` and a line each in `prior`
and `export`.
"""

"""From a table of healthy people to a trained model: the only room that knows GPflow.

Here live the checks of a hospital's table, the simulated cohort, the recipes, the fit, its calibration on held-out
people and the gates of publication. Files are read and written elsewhere, and so is prediction: a fit ends in the
NumPy posterior of `app.maths`, proven equal to GPflow's own.

    recipe       what to fit and how, as plain options       inducing     where the inducing points start
    likelihood   the closed-form data terms                  model        both latent GPs, their priors
    lbfgs        one stage of full-batch L-BFGS              natgrad      the paper's optimiser
    fit          the stages in order, the record             export       from GPflow to NumPy, and the proof

Importing this package imports no TensorFlow; importing `fit` does, by way of `stack`.

To add a recipe: a classmethod of `Recipe` with its evidence. To add an option: a field of `Recipe` (it then stands
on every card), read where it matters. A new kernel needs its shape in `app.maths.kernels` and a line in `model`.
"""

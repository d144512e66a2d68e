"""From a table of healthy people to a trained model: the only package that imports GPflow.

It checks a hospital's table, simulates cohorts, fits, calibrates on held-out people and decides by gates whether a
model may be published. Prediction is not its task: a fit ends in the NumPy posterior of `app.maths`, proven equal to
GPflow's own.

    table            a table of people, read from CSV          model            the SVGP, also with q(f1) at its optimum
    table_checks     whether it can be trained on              fit              the stages, then from GPflow to NumPy
    cohort           simulated people                          calibration      on held-out people, and the gates
    recipe           what to fit and how, as plain options     gpflow_setup     imports TensorFlow and GPflow

Importing this package imports no TensorFlow; importing `fit` does, through `gpflow_setup`.

To add a recipe: a classmethod of `Recipe` with its evidence. To add an option: a field of `Recipe` (it then appears
on every card), read where it matters. A new kernel needs its shape in `app.maths` and a line in `model` and in
`fit`.
"""

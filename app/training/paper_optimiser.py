"""The paper's optimiser: a natural gradient step on q, then an Adam step on everything else, 40,000 times."""

from collections.abc import Callable
from typing import Any

from app.training.outcome import Outcome, Step
from app.training.stack import gpflow, tf, tf_keras

GAMMA = 0.02  # both from the paper, section "Experiments"
LEARNING_RATE = 0.01
STEPS_PER_CALL = 100  # inside one compiled loop; a call from Python costs as much as a step


def minimise(model: Any, loss: Callable[[], Any], steps: int, step: Step) -> Outcome:
    advance = _compiled(model, loss)
    done = 0
    while done < steps:
        count = min(STEPS_PER_CALL, steps - done)
        objective = -float(advance(tf.constant(count)))
        done += count
        step(done / steps, objective)
    return Outcome(steps, 2 * steps, "all steps taken")


def _compiled(model: Any, loss: Callable[[], Any]) -> Any:
    q = {id(parameter.unconstrained_variable) for parameter in (model.q_mu, model.q_sqrt)}
    others = [variable for variable in model.trainable_variables if id(variable) not in q]
    natural, adam = gpflow.optimizers.NaturalGradient(GAMMA), tf_keras.optimizers.Adam(LEARNING_RATE)
    adam.build(others)

    @tf.function  # type: ignore[untyped-decorator]
    def advance(count: Any) -> Any:
        value = tf.zeros((), tf.float64)
        for _ in tf.range(count):
            natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(others)
                value = loss()
            adam.apply_gradients(zip(tape.gradient(value, others), others, strict=True))
        return value

    return advance

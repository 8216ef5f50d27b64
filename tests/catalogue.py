"""Every method in every form and option, for the tests that must leave nothing out."""

from __future__ import annotations

import math

from gordan import methods

OPTIONS = {
    "smooth_perceptron": [{}, {"eta": 0.5}],
    "accelerated_perceptron": [{}, {"eta": 0.5}, {"theta": "original"}],
    "mirror_prox_perceptron": [{}],
    "nesterov": [{}, {"p": 6.0}],
    "accelerated_p_norm_perceptron": [{"p": 3.0}, {"p": 3.0, "w_set": "free"}, {"p": 12.0}],
    "smooth_p_norm_perceptron": [{"p": 3.0}, {"p": 12.0}],
    "perceptron": [{}, {"output": "average"}],
    "p_norm_perceptron": [{"p": 3.0}, {"output": "average"}],
    "gradient_descent": [{}],
    "normalized_gradient_descent": [{}, {"step": "1/sqrt(t)"}],
    "steepest_descent": [{"p": 3.0}, *({"p": p, "step": "normalized"} for p in (1.0, 1.5, math.inf))],
    "mirror_descent": [{"p": 3.0}, {"p": 6.0, "weights": "constant"}],
    "box_perceptron": [{"p": 1.0}, {"p": 1.5}],
    "frank_wolfe": [{}, *({"step": step} for step in ("line search", "away", "pairwise"))],
    "pdhg": [{}, {"omega": 2.0}, {"restart": True}],
    "rescaled_perceptron": [{}, {"step": "plain"}, {"basic": "mirror_prox_perceptron"}],
    "projection_rescaling": [{}],
    "robust_perceptron": [{"noise_norm": s, "noise": 0.05} for s in (1.0, 2.0, math.inf)],
    "rescaling": [{}],
    "double_oracle": [{}, {"p": 3.0}, {"p": math.inf}],
}

# θ = 1 is no play of the game with matching weights; a line search and a restart are none either
NO_GAME = {
    ("accelerated_perceptron", "theta", "original"),
    ("pdhg", "restart", True),
    *(("frank_wolfe", "step", step) for step in ("line search", "away", "pairwise")),
}


def every_method():
    """{id: method} over all names, forms and options; a new name in the registry must be given a line above."""
    found = {}
    for name in methods.names():
        for form in methods.get(name).forms:
            for options in OPTIONS[name]:
                if form == "game" and NO_GAME & {(name, *option) for option in options.items()}:
                    continue  # options without a game form; refused, see test_bad_input
                label = "-".join([name, form, *(f"{key}={value}" for key, value in options.items())])
                found[label] = methods.get(name)(form=form, **options)
    return found


def supports(method, sets):
    """Why a method does not run on these sets, as it declares it, or None if it does."""
    return method.plain if sets else None

"""Every method in every form and option, for the tests that must leave nothing out."""

from __future__ import annotations

import math

from gordan import methods

OPTIONS = {
    "smooth_perceptron": [{}, {"eta": 0.5}],
    "accelerated_perceptron": [{}, {"eta": 0.5}, {"theta": "original"}],
    "mirror_prox_perceptron": [{}],
    "nesterov": [{}],
    "accelerated_p_norm_perceptron": [{"p": 3.0}, {"p": 3.0, "w_set": "free"}, {"p": 12.0}],
    "smooth_p_norm_perceptron": [{"p": 3.0}, {"p": 12.0}],
    "perceptron": [{}, {"output": "average"}],
    "p_norm_perceptron": [{"p": 3.0}, {"output": "average"}],
    "gradient_descent": [{}],
    "normalized_gradient_descent": [{}, {"step": "1/sqrt(t)"}],
    "double_oracle": [{}, {"p": 3.0}, {"p": math.inf}],
}


def every_method():
    """{id: method} over all names, forms and options; a new name in the registry must be given a line above."""
    found = {}
    for name in methods.names():
        for form in methods.get(name).forms:
            for options in OPTIONS[name]:
                if options.get("theta") == "original" and form == "game":
                    continue  # θ = 1 is no play of the game with matching weights; refused, see test_bad_input
                label = "-".join([name, form, *(f"{key}={value}" for key, value in options.items())])
                found[label] = methods.get(name)(form=form, **options)
    return found


def supports(method, sets):
    """Why a method does not run on these sets, or None if it does."""
    if not sets:
        return None
    if method.name in ("perceptron", "p_norm_perceptron"):
        return "looks at one row at a time: no caps, no halves"
    if method.name == "gradient_descent" or method.form == "gradient":
        return "is about the plain exponential loss: no caps, no halves"
    return None

"""Log-probabilities of one word a token: that of `log_softmax` at the label, [T, 1].

inputs: (logits [T, V], labels [T, 1]) or these and padding [T, P]; labels are column numbers.
"""

import numpy as np

from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.kinds import Given
from dump_analysis.replay.formulas.log_softmax import formula_of


def _at_labels(given: Given, scaled: Emulated) -> Emulated:
    labels = given.inputs[1].astype(np.int64)
    return Emulated(*(np.take_along_axis(part, labels, axis=1) for part in scaled))


FORMULA = formula_of("log_prob", _at_labels, 2)

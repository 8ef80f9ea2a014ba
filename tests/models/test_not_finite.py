"""NaN and infinity in X are refused with their row and column, in fits and in predictions, whatever the estimator."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from strads.errors import InputError
from strads.models import Lasso, LinearSVC, LogisticRegression, MultinomialLogisticRegression

X = np.random.default_rng(0).normal(size=(30, 4))
Y = (X[:, 0] > 0).astype(int)
MODELS = [Lasso(0.1), LinearSVC(), LogisticRegression("l2"), MultinomialLogisticRegression()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_row_and_column_are_named(model, value, name):
    bad = X.copy()
    bad[17, 2] = value
    frame = pd.DataFrame(bad, columns=["a", "b", "size", "d"])
    for form in (np.asarray, sp.csr_array, sp.csc_array):
        with pytest.raises(InputError, match=f"X contains {name} in row 17, column 2"):
            model.fit(form(bad), Y)
        fitted = model.fit(form(X), Y)
        with pytest.raises(InputError, match=f"X contains {name} in row 17, column 2"):
            fitted.predict(form(bad))
    with pytest.raises(InputError, match=rf"X contains {name} in row 17, column 2 \('size'\)"):
        model.fit(frame, Y)

"""Names of the arrays that most of the linear models are made of."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

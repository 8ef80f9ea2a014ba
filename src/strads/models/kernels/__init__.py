"""Loop bodies and compiled functions of the estimators."""

"""Matrix factorization: ratings, the tables of factors, and the solvers that fit them."""

"""One seed, any number of cores: a model has the same SHA-256 whatever threads, nodes and backend it was fitted on.

`python tests/one_seed`, or `make seeds`, prints the hashes by place.
"""

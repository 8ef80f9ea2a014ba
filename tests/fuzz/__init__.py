"""A differential fuzzer: random loops, run by strads and by plain Python, must agree (`python tests/fuzz --help`)."""

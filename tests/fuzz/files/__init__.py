"""A fuzzer of files, arguments and models: whatever is wrong, a command says so (`python tests/fuzz/files --help`)."""

"""A half-megabyte model on a llama.cpp server, to try `abstain run` without a network."""

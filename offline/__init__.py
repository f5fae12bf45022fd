"""A model of half a megabyte and the server of llama.cpp, to try `abstain run` without a network."""

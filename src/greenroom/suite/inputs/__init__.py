"""The author's input: code by reference, cases from anywhere, criteria and models of judges."""

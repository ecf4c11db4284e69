"""Tests of the tests: agents changed for the worse, and whether the cases notice."""

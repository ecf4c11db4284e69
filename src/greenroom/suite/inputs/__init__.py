"""What the author gives: code by reference, cases from anywhere, criteria and models of judges."""

"""inspect-ai with its own agent loop, and two scorers: the calls, and ROUGE-1 from rouge-score."""

import stopwatch
from contestants.inspect_ai import play
from contestants.rouge_bare import rouge_score_f1
from scenario import LIKENESS, Row, compared_rows

f1 = rouge_score_f1()


def resembles(row: Row, said: str) -> bool:
    """The answer is like the reference."""
    return f1(row.reference, said) >= LIKENESS


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: play(rows, latency, resembles), compared_rows)

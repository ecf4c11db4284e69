"""google-adk's LocalEvalService: an LlmAgent with a scripted model, and ADK's own two criteria."""

import asyncio

import stopwatch
from contestants.google_adk import evaluate
from scenario import LIKENESS, compared_rows

CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": LIKENESS}

if __name__ == "__main__":
    stopwatch.main(
        lambda rows, latency: asyncio.run(evaluate(rows, latency, CRITERIA)), compared_rows
    )

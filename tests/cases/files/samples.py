"""One small file of every shape, as people have them."""

import json

AGENTFLOW = {
    "eval_set_id": "forecasts",
    "name": "Forecasts",
    "description": "What the weather clerk knows",
    "eval_cases": [
        {
            "eval_id": "one_city",
            "conversation": [
                {
                    "invocation_id": "inv_001",
                    "user_content": {
                        "role": "user",
                        "content": [{"type": "text", "text": "Is it raining in Oslo?"}],
                    },
                    "expected_tool_trajectory": [{"name": "look", "args": {"city": "Oslo"}}],
                    "expected_final_response": {
                        "role": "assistant",
                        "content": [{"type": "text", "text": "It is dry in Oslo."}],
                    },
                }
            ],
            "session_input": {"app_name": "clerk", "user_id": "ada"},
        },
        {
            "eval_id": "two_cities",
            "conversation": [
                {
                    "invocation_id": "inv_002",
                    "user_content": {"role": "user", "content": "Oslo and Rome?"},
                    "expected_tool_trajectory": [],
                }
            ],
        },
    ],
}
AGENTFLOW_CONFIG = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"},
        "response_match_score": {"threshold": 0.7},
        "final_response_match_v2": {
            "threshold": 0.8,
            "judge_model": "gpt-4o-mini",
            "num_samples": 3,
        },
    },
    "user_simulator_config": {"model": "gpt-4o", "max_allowed_invocations": 10},
}
ADK = {
    "eval_set_id": "lights",
    "name": "Lights",
    "eval_cases": [
        {
            "eval_id": "off",
            "conversation": [
                {
                    "invocation_id": "e-1",
                    "user_content": {"parts": [{"text": "Lamp off."}], "role": "user"},
                    "final_response": {"parts": [{"text": "It is off."}], "role": "model"},
                    "intermediate_data": {
                        "tool_uses": [{"name": "switch", "args": {"lamp": 2, "on": False}}]
                    },
                }
            ],
            "session_input": {
                "app_name": "home",
                "user_id": "ada",
                "state": {"room": "hall", "user:name": "Ada"},
            },
        },
        {
            "eval_id": "chat",
            "conversation_scenario": {
                "starting_prompt": "Hello",
                "conversation_plan": "Ask for the hall lamp.",
            },
        },
    ],
}
ADK_CONFIG = {
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": 2, "ignore_args": True},
        "response_match_score": 0.8,
        "final_response_match_v2": {
            "threshold": 0.5,
            "judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": 5},
        },
    }
}
ADK_FLAT = [
    {
        "query": "Lamp off.",
        "expected_tool_use": [{"tool_name": "switch", "tool_input": {"lamp": 2}}],
        "expected_intermediate_agent_responses": [],
        "reference": "It is off.",
    },
    {"query": "Thanks.", "expected_tool_use": [], "reference": "You are welcome."},
]
ADK_NAMED = [
    {
        "name": "off",
        "data": ADK_FLAT,
        "initial_session": {"state": {"room": "hall"}, "app_name": "x"},
    }
]
QUERIES = {
    "name": "forecast_tests",
    "description": "The weather clerk",
    "data": [
        {
            "name": "one_city",
            "query": "Oslo?",
            "expected_tool_calls": ["look"],
            "expected_tool_args": {"look": {"city": "Oslo"}},
            "reference_answer": "dry in Oslo",
        },
        {"name": "compare", "query": "Oslo and Rome?", "expected_tool_calls": ["look", "look"]},
        {"name": "no_tool", "query": "Who are you?", "expected_tool_calls": []},
    ],
}
SESSIONS = {
    "name": "booking_tests",
    "type": "evalset",
    "sessions": [
        {
            "name": "flight",
            "turns": [
                {
                    "user": "I want to fly",
                    "expected_tools": ["search"],
                    "expected_response_contains": "Where",
                },
                {"user": "To Oslo", "expected_tools": []},
            ],
        }
    ],
}
FLUENT = """\
name: billing_v2
metrics: [tool_trajectory_avg_score, response_evaluation_score]
thresholds:
  tool_trajectory_avg_score: 1.0
num_runs: 2
cases:
  - input: "My bill is too high"
    expected_trajectory: [classify, ticket]
    tags: [billing, dispute]
  - input: [Hello, I want a refund]
    expected_trajectory: [classify, refund]
    expected_response_contains: done
    mock_tool_outputs: {refund: {ok: true}}
    initial_state: {order: 7}
    state_assertions: {intent: refund}
    target_node: clerk
    metadata: {id: refund, owner: ada}
"""
SCENARIOS = [
    {
        "scenario_id": "impatient",
        "description": "Wants a quick answer",
        "starting_prompt": "Weather?",
        "conversation_plan": "Ask for Oslo, then for tomorrow.",
        "goals": ["a temperature", "a forecast"],
        "max_turns": 6,
    }
]
OWN = """\
version: 1
id: refunds
metrics:
  - exact
  - {criterion: response_match_score, threshold: 0.7}
trials: 3
cases:
  - id: asks-first
    says: Money back!
    expect: {tools: [], contains: order}
"""

FILES: dict[str, tuple[str, str]] = {
    "greenroom": ("refunds.yaml", OWN),
    "agentflow": ("forecasts.evalset.json", json.dumps(AGENTFLOW)),
    "adk": ("lights.evalset.json", json.dumps(ADK)),
    "adk-flat": ("lamp.test.json", json.dumps(ADK_FLAT)),
    "adk-named": ("lamps.evalset.json", json.dumps(ADK_NAMED)),
    "queries": ("clerk.test.json", json.dumps(QUERIES)),
    "sessions": ("booking.json", json.dumps(SESSIONS)),
    "fluent": ("billing.yaml", FLUENT),
    "scenarios": ("scenarios.json", json.dumps(SCENARIOS)),
    "table": ("questions.csv", "question,answer\nOslo?,It is dry.\n"),
}
"""A file of each shape: its name and its text."""

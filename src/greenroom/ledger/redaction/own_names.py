"""The names of the fields that Greenroom's own documents have, each once.

Where a secret is one of these words, it stays as the name of a field; any other key is free text. The list is
written out, so that no password is taken for a field by its looks. A test finds the fields that are not in it.
"""

from typing import Final

_NAMES: Final = """
a about accepts act actual actual_calls actual_usd adaptive added adjusted after after_path
again against agent agents aggregate ago agreed allow_tools allowance alpha always answer
answered_by answers apart app approval approvals args argument_checks arguments asked asking
asks at at_least at_most at_once attachment attachments attempt attributes awaits_input b bad
bars based_on baseline batch bearer before began begun beside better between bins blame body
bridge brief broken budget by by_args by_judge by_luck by_people cache call_id called calls
calls_at_least capabilities cards case case_id case_seconds cases categories change changed
changes check children choice choices code column command commit compared compares config
confirmed conflicts contains content context contracts conversation conversations
conversations_per_day cost cost_high costs count counts criteria criterion critical current cuts
d data default delta description details detectable difference differences differs digest do
does_nothing done down drift earlier earlier_costs early_stop edges end ended endpoint ends enum
error error_handlers error_type errors estimate evalset evalset_id evaluated event events
evidence exactly example exit_code expect expected extensions extra facts failed failures
failures_only fault fewest_trials file files finish_reason finished first fix fixed flaky
flipped fn forecasts forked_from form format framework from_run from_seq gate given gives goal
goals going graded graph guardrails guesses h handoffs headers high hint history hold hosts id
idle idle_metrics ignore_args ignore_case implied impossible improved in_place_of in_turn
incomparable index input input_schema instructions intermediate interrupted interval is_fixed
is_minimal isolation issues item items judge judge_cost judge_model judge_models
judge_right_of_failed judge_right_of_passed judge_usage judges k kappa kept key killed killed_by
kind known known_cost label labels last learnt_from ledger left_out level likeness limit limits
line lines links list live loop low match match_type max max_rounds max_seconds max_turns mean
means meant measured measures media_type members mermaid message message_waits messages metadata
metric metrics middleware min min_cost min_s mine missed missing mock mocks mode model
model_calls models moved mutants n name names negative_words never next no node nodes
not_applicable notes now num_samples observed on on_step op opaque options origin otherwise ours
outcome output output_schema over p pack pairs paragraph parallel_calls parameters part parted
partial parts pass_rate passed passes passing path pattern penalty people_divided
per_conversation person persona personas phase pieces place plan planned played power prices
problem problems prompt prompts properties q query question questions quorum rate read read_only
reads reason recorded_at ref reference regressed remade remarks remote removed removes repairs
replaced replayed rescored_from resources response responses result results retries role roles
rows rubric rubrics run run_id running runs s said same same_setting samples says scale schema
scheme schemes scope score scored scores script second seconds seed sentence seq set set_digest
sets settings settled several severity shape share shown signature simulated simulated_user size
skills skipped sort source sources speaks_first spent src state state_after state_changes
state_matches status steady stem step stop stop_signal stopped stopped_by store streaming
streams structured_output sub_agents subgraphs summary suspect tag tags takes target template
terminated text texts theirs then threshold timeline timeout title to together token tokens
tokens_in tokens_out tolerance tool tool_args tool_call tools toolsets total trace trace_id
trace_link trajectory transform trend trial trials trials_seen trivial trouble turn turns type
unchanged unclear undecided unknown unlike unmeasured unread unseen unsteady until uri url usage
usd usd_at_least usd_per_day user user_cost user_models user_usage users valid validate value
values verdict verdicts version visits voice w waits waits_for warnings weak when where who
whole_words whom why word words world worse writable writes y yes yield_id yields
"""
OWN_NAMES: Final = frozenset(_NAMES.split())

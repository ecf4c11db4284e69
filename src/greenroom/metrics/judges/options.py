"""The options of every judge, from Python or from a file; they are checked only here."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, cast, get_args

from greenroom.errors import BadAgent, BadMetric
from greenroom.ledger.choices import near
from greenroom.metrics import builtin
from greenroom.metrics.judges.bench import RETRIES, Aggregate, Bench
from greenroom.metrics.judges.evidence import FIELDS, LIMIT
from greenroom.models.chooser import Chooser
from greenroom.models.model import Model
from greenroom.world.answers import AnswerCache

MODEL = "openai:gpt-4o-mini"
JUDGE, RUBRIC, SAFETY, CUSTOM = 0.8, 0.8, 1.0, 0.5
"""Default thresholds."""
VOTES = 5
"""The default number of samples for criteria that vote."""

_MOST_SAMPLES = 100
_LEAST_EVIDENCE = 1000

Adk = Literal["votes", "turns", "replies"]
"""How google-adk uses a judge: majorities of five in each turn; a mean over the turns; or
majorities of five on each reply of the user."""

P = ParamSpec("P")
T = TypeVar("T")


class Options(TypedDict, total=False):
    """How a judge asks; `judge_model` and `num_samples` are aliases of two of them."""

    model: Model | str | None
    judge_model: Model | str | None
    samples: int | None
    num_samples: int | None
    aggregate: Aggregate
    early_stop: bool
    counts: Literal["greenroom", "adk"]
    retries: int
    batch: int
    cache: AnswerCache | str | Path | bool | None
    limit: int


def takes_options(factory: Callable[P, T]) -> Callable[P, T]:
    """Add the common options to a factory's signature, where a registry looks for them."""
    return _signed(factory, list(Options.__annotations__))


def takes_options_of(other: Callable[..., object]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Add the options of another factory to the signature of one that passes them on."""
    parameters = inspect.signature(other).parameters.values()
    options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return lambda factory: _signed(factory, options)


def _signed(factory: Callable[P, T], options: list[str]) -> Callable[P, T]:
    own = inspect.signature(factory)
    named = {p.name: p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD}
    for name in options:
        further = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        named.setdefault(name, further)
    cast(Any, factory).__signature__ = own.replace(parameters=list(named.values()))
    return factory


def bench_from(given: Options, where: str, samples: int = 1, adk: Adk | None = None) -> Bench:
    """The bench these options describe; `adk` says what `counts="adk"` means to this judge."""
    options = cast("dict[str, object]", given)
    for name in options:
        if name not in Options.__annotations__:
            found = near(name, Options.__annotations__)
            meant = f" Did you mean {found[0]!r}?" if found else ""
            raise BadMetric(f"{where} has no option {name!r}.{meant}", option=name)
    if adk is None and options.get("counts") is not None:
        raise BadMetric(
            f"{where} has counts={options['counts']!r}, but google-adk has no such judge."
        )
    as_adk = _choice(options, "counts", ("greenroom", "adk"), where) == "adk"
    votes = as_adk and adk != "turns"
    aggregate = _choice(options, "aggregate", get_args(Aggregate), where)
    early_stop = options.get("early_stop")
    if not isinstance(early_stop, bool | None):
        raise BadMetric(f"{where}: early_stop is {early_stop!r}; give true or false.")
    asked = _either(options, "samples", "num_samples", where)
    return Bench(
        every_turn=as_adk and adk != "replies",
        model=_model(_either(options, "model", "judge_model", where), where),
        samples=_whole(asked, VOTES if votes else samples, (1, _MOST_SAMPLES), f"{where}: samples"),
        aggregate=cast("Aggregate", aggregate or ("majority" if votes else "mean")),
        early_stop=bool(early_stop),
        retries=_whole(options.get("retries"), RETRIES, (0, RETRIES), f"{where}: retries"),
        batch=_whole(options.get("batch"), 0, (0, 1000), f"{where}: batch"),
        cache=_cache(options.get("cache"), where),
        limit=_whole(options.get("limit"), LIMIT, (_LEAST_EVIDENCE, 10**9), f"{where}: limit"),
    )


def _either(options: Mapping[str, object], name: str, alias: str, where: str) -> object:
    one, other = options.get(name), options.get(alias)
    if one is not None and other is not None:
        raise BadMetric(f"{where} has both `{name}` and `{alias}`, which are the same option.")
    return other if one is None else one


def _choice(
    options: Mapping[str, object], name: str, choices: Sequence[str], where: str
) -> str | None:
    given = options.get(name)
    if given is None or (isinstance(given, str) and given in choices):
        return given
    raise BadMetric(f"{where} has {name}={given!r}; give one of {list(choices)}.")


def _model(given: object, where: str) -> Model:
    from greenroom.models.named import as_model  # most runs name no provider

    try:
        model = as_model(MODEL if given is None else cast("Model | str", given), where)
    except BadAgent as error:
        raise BadMetric(str(error)) from error
    if isinstance(model, Chooser) and model.adapts:
        raise BadMetric(
            f"{where} has the model {model.name}, but a judge gets no feedback, so it would never "
            f"adapt; choose by 'cost', 'quality' or 'budget'."
        )
    return model


def _whole(given: object, default: int, bounds: tuple[int, int], what: str) -> int:
    low, high = bounds
    if given is None:
        return default
    if type(given) is int and low <= given <= high:
        return given
    raise BadMetric(f"{what} is {given!r}; give a whole number from {low} to {high}.")


def _cache(given: object, where: str) -> AnswerCache | bool | None:
    if given is None or given is False or isinstance(given, AnswerCache):
        return given
    if given is True:
        return AnswerCache()
    if isinstance(given, str | Path) and str(given).strip():
        return AnswerCache(given)
    raise BadMetric(f"{where} has cache={given!r}; give true, false or a folder.")


def checked_threshold(threshold: object, default: float, where: str) -> float:
    """The threshold, on the scale from 0 to 1, or the default."""
    if threshold is None:
        return default
    return builtin.checked_threshold(threshold, where)


def checked_grade(threshold: object, default: int, top: int, where: str) -> int:
    """The grade that passes, on a scale of whole numbers."""
    if threshold is None:
        return default
    if type(threshold) is int and 1 <= threshold <= top:
        return threshold
    raise BadMetric(
        f"{where} has threshold={threshold!r}; its scale is 0 to {top}: give a whole number from 1 "
        f"to {top}."
    )


def checked_text(text: object, option: str, where: str) -> str:
    """The string, if it is not empty."""
    if isinstance(text, str) and text.strip():
        return text
    raise BadMetric(f"{where} has {option}={text!r}; give a string that is not empty.")


def checked_template(template: object, fields: Collection[str], where: str) -> str:
    """The template, if it has each of these places, and no other.

    The notice about the evidence and the form of the answer are not part of a template: they are
    added to every template, so that none can lose them.
    """
    if not isinstance(template, str) or not template.strip():
        raise BadMetric(f"{where} has template={template!r}; give a string.")
    places = _places(template, where)
    for place in places:
        if place in FIELDS:
            raise BadMetric(
                f"{where} has {{{place}}} in its template. Evidence never goes into the "
                f"instructions; write `{place}` without braces, the judge finds it in the record."
            )
        if place not in fields:
            known = ", ".join(f"{{{field}}}" for field in fields) or "none"
            raise BadMetric(
                f"{where} has the unknown place {{{place}}} in its template; known: {known}. "
                f"Write {{{{ and }}}} for braces that are meant."
            )
    if missing := [field for field in fields if field not in places]:
        raise BadMetric(f"{where} has a template without {{{missing[0]}}}; say where it goes.")
    return template


def _places(template: str, where: str) -> set[str]:
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise BadMetric(
            f"{where} has a template that cannot be read: {error}. Write {{{{ and }}}} for braces."
        ) from error
    for _, place, spec, conversion in parts:
        if place is not None and (spec or conversion or not place.isidentifier()):
            raise BadMetric(
                f"{where} has the place {{{place}}} in its template; a place is a bare name."
            )
    return {place for _, place, _, _ in parts if place is not None}


def filled_template(template: str | None, usual: str, where: str) -> str:
    """The given template, which has no places, or the default one."""
    # Filling it turns {{ and }} into braces.
    return usual if template is None else checked_template(template, (), where).format()

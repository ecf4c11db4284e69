"""Results of promptfoo, as `promptfoo eval -o results.json` writes them."""

from collections.abc import Iterator

from greenroom.errors import BadTrace
from greenroom.ledger.plain import Json, as_text, is_array, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.messages import messages_in
from greenroom.traces.records import Flaw, Found, Imported
from greenroom.traces.values import array, obj
from greenroom.traces.writer import LedgerWriter, price_of, usage_of


class Promptfoo:
    """Reads each result as a conversation of one turn. Tools that a provider called are not visible."""

    name = "promptfoo"

    def recognises(self, file: TraceFile) -> bool:
        """Whether it holds results of a version."""
        results = file.first.get("results")
        return is_object(results) and is_array(results.get("results")) and "version" in results

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each result."""
        for document in file.documents:
            results = obj(obj(document.data, "the file").get("results"), "results")
            for number, result in enumerate(array(results.get("results"), "results.results")):
                try:
                    yield _result(obj(result, "a result"), number, file.source)
                except BadTrace as error:
                    place = document.at(f"results.results[{number}]")
                    yield Flaw(place=place, why=str(error), source=file.source)


def _result(result: dict[str, Json], number: int, source: str) -> Imported:
    name = str(result.get("id") or f"result-{number}")
    writer = LedgerWriter(name)
    writer.miss("tools", "times")
    prompt = result.get("prompt")
    raw = prompt.get("raw") if is_object(prompt) else prompt
    heard = [one.text for one in messages_in(raw) or () if one.role == "user"]
    writer.user(heard[-1] if heard else raw if isinstance(raw, str) else None)
    response = result.get("response")
    if is_object(response) and response.get("output") is not None:
        said = as_text(response["output"])
        used = response.get("tokenUsage")
        tokens = used if is_object(used) else {}
        usage = usage_of(tokens.get("prompt"), tokens.get("completion"))
        provider = result.get("provider")
        model = str(provider.get("id") or "") if is_object(provider) else ""
        asked = writer.asked(model=model)
        writer.replied(asked, said, usage=usage, cost=price_of(response.get("cost")))
        writer.said(said)
    elif result.get("error"):
        writer.broke(str(result["error"]))
    else:
        writer.said(None)
    verdicts = {key: result[key] for key in ("success", "score") if key in result}
    case_id = str(result.get("testIdx", "")) or name
    return writer.imported("promptfoo", source, case_id=f"test-{case_id}", verdicts=verdicts)

"""The cases of a run under the names that the store has for them."""

from collections.abc import Mapping
from dataclasses import replace

from greenroom.cases.evalset import EvalSet
from greenroom.ledger.redaction import Redactor, clean_ids
from greenroom.results.result import CaseResult
from greenroom.store.runs import Key
from greenroom.suite.storage.identity import case_identity, set_digest
from greenroom.suite.trial_state import Trial


class Cases:
    """The cases of a run as the store knows them: by ids without secrets, and digests.

    `names` are the ids under which the store has cases already, by their digests: an id that looked like
    a secret then may not now.
    """

    def __init__(
        self, evalset: EvalSet, redactor: Redactor, names: Mapping[str, str] | None = None
    ) -> None:
        self.redactor = redactor
        self.digests: dict[str, str] = {}
        self._stored: dict[str, str] = {}
        self._own: dict[str, str] = {}
        clean = clean_ids(evalset.ids, redactor)
        identities = [case_identity(case) for case in evalset]
        self.set_digest = set_digest(identities)
        for case, (digest, _) in zip(evalset, identities, strict=True):
            stored = (names or {}).get(digest) or clean[case.id]
            if stored in self._own:  # the id of another case looks like this one without its secret
                stored = f"{stored} #{digest}"
            self._stored[case.id], self._own[stored] = stored, case.id
            self.digests[stored] = digest

    def key(self, trial: Trial) -> Key:
        """The key of a trial in the store."""
        return Key(self._stored[trial.case.id], trial.number)

    def own(self, key: Key, result: CaseResult) -> tuple[Key, CaseResult]:
        """A trial of the store by the id that its case has here."""
        case_id = self._own[key.case_id]
        if case_id == key.case_id:
            return key, result
        return Key(case_id, key.trial), replace(result, case_id=case_id)

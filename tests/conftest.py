import os

from hypothesis import settings

pytest_plugins = ["pytester"]

# Tests of the store say where theirs is; the others leave nothing behind.
os.environ["GREENROOM_STORE"] = "off"

# A busy machine is not a bug: properties are about behaviour, deadlines are the benchmarks' business.
# The gate tries the same examples on every machine; torture looks for new ones.
settings.register_profile("greenroom", deadline=None, derandomize=True)
# For the tests marked `deep`, in `make test-all`.
settings.register_profile("deep", settings.get_profile("greenroom"), max_examples=1000)
settings.load_profile("greenroom")

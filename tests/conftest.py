from hypothesis import settings

pytest_plugins = ["pytester"]

# A busy machine is not a bug: properties are about behaviour, deadlines are the benchmarks' business.
# The gate tries the same examples on every machine; torture looks for new ones.
settings.register_profile("greenroom", deadline=None, derandomize=True)
settings.load_profile("greenroom")

from hypothesis import settings

# A busy machine is not a bug: properties are about behaviour, deadlines are the benchmarks' business.
settings.register_profile("greenroom", deadline=None)
settings.load_profile("greenroom")

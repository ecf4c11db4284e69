"""The bare loop, with the trajectory compared by hand and ROUGE-1 from Greenroom."""

from contestants.rouge_bare import main

from greenroom.metrics import rouge

if __name__ == "__main__":
    main(lambda reference, said: rouge(reference, said).f1)

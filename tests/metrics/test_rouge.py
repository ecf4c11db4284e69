"""ROUGE and its stems are those of rouge-score for ASCII texts, and of google-adk for all others."""

from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.errors import BadMetric
from greenroom.metrics.rouge import KINDS, rouge, words_in
from greenroom.metrics.stems import stem


# Loaded by the tests that compare with them: they import scipy, which every worker would load otherwise.
@cache
def porter() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@cache
def scorer(stemmed: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(KINDS), use_stemmer=stemmed)


def words(text: str) -> list[str]:
    return text.split()


ROOTS = words(
    "a b y tr cry play trap hopp fall fizz hiss fil conflat troubl siz rel condit rat val hesit dig "
    "conform radic differ vil analog pred oper feudal decis call form sens tripl electr good rev "
    "allow infer gyroscop adjust defens irrit replac depend adopt homolog commun activ angul effect "
    "bowdler prob ceas contr roll yy ayy oy eye 9 a9 99b x0 syz ow ax al all alll"
)
SUFFIXES = words(
    "s es ies sses ss ed eed ied ing ying y ational tional enci anci izer bli abli alli entli eli "
    "ousli fulli logi ization ation ator alism iveness fulness ousness aliti iviti biliti icate "
    "ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion sion tion "
    "ou ism ate iti ous ive ize e ll ly ally logy ency bly ality bility ities ations"
)
IRREGULAR = words(
    "sky skies dying lying tying news innings inning outings outing cannings canning howe proceed "
    "exceed succeed died dies tied ties spied flies fly by say enjoy"
)

letters = st.text("aeiouyyblstz019", max_size=6)
suffixes = st.sampled_from(["", *SUFFIXES])
made_up = st.builds("{}{}{}".format, letters, suffixes, suffixes)
sentences = st.lists(made_up | st.sampled_from([*IRREGULAR, *ROOTS]), max_size=30).map(" ".join)
# Few words, so that they repeat and change places.
babble = st.lists(st.sampled_from(words("run running ran a the hop hops hoping")), max_size=40)
# Few roots, most of them short, so that texts have other forms of each other's words.
few_roots = st.sampled_from(words("a ad add d do die dy fl fly hop us use connect 0 yy bab"))
few_suffixes = st.sampled_from(["", *words("s es ed ing ies ied y ness ful ative ss e er")])
# Scripts with marks, without spaces, with digits of their own, from both directions.
SCRIPTS = "aZ9 _-'éßİǅпвЖαΩ退款天がカ환불คืนเงิที่ລາວខ្មែរမြန်हिन्दीعربעברית٣½ﬁＡ\u0301\u0307\u3099👍🏽✅️"
texts = st.text(st.sampled_from(SCRIPTS)) | st.text()
forms = st.lists(st.builds("{}{}{}".format, few_roots, few_suffixes, few_suffixes), max_size=40)


@cache
def made_of_roots() -> list[str]:
    made = {root + one + two for root in ROOTS for one in SUFFIXES for two in ("", *SUFFIXES)}
    assert len(made) > 300_000
    return sorted(made)


@cache
def made_of_short_beginnings() -> list[str]:
    beginnings = ("".join(both) for both in product("abcdefghijklmnopqrstuvwxyz0", repeat=2))
    made = {begin + more for begin in beginnings for more in SUFFIXES}
    return sorted(made | {word[0] + word for word in made} | {word[1:] for word in made})


def agree(target: str, prediction: str) -> None:
    for stemmed, kind in product((True, False), KINDS):
        theirs = scorer(stemmed).score(target, prediction)[kind]
        assert rouge(target, prediction, kind, stemmed) == tuple(theirs), (kind, stemmed)


# Every so many of the words: enough to meet each root and each pair of suffixes, or nearly all.
@pytest.mark.parametrize(
    "words_of, every",
    [
        pytest.param(made_of_roots, 71, id="some roots"),
        pytest.param(made_of_short_beginnings, 17, id="some beginnings"),
        pytest.param(made_of_roots, 7, id="roots", marks=pytest.mark.heavy),
        pytest.param(made_of_short_beginnings, 1, id="beginnings", marks=pytest.mark.heavy),
    ],
)
def test_roots_and_beginnings_with_suffixes_have_the_stem_of_nltk(words_of, every):
    made = words_of()[::every]
    wrong = [word for word in made if stem(word) != porter().stem(word)]
    assert wrong == []


@pytest.mark.parametrize(
    "one, other",
    [
        ("dying", "died"),
        ("skies", "sky"),
        ("flying", "flies"),
        ("doing", "do"),
        ("using", "used"),
        ("adding", "ad"),
        ("inative", "in"),
        ("aing", "a"),
        ("sses", "ss"),
    ],
)
def test_forms_of_a_word_are_found_however_short_their_stem(one, other):
    assert rouge(one, other).f1 == 1.0
    agree(one, other)


@pytest.mark.parametrize("plural", words("proceeds innings dyings howes news buss flys parties"))
def test_a_word_and_one_like_its_plural_have_the_figures_of_rouge_score(plural):
    agree(plural, plural[:-1])


@pytest.mark.parametrize("word", IRREGULAR)
def test_words_that_follow_no_rule_have_the_stem_of_nltk(word):
    assert stem(word) == porter().stem(word)


@pytest.mark.deep
@given(made_up.filter(bool))
def test_any_word_has_the_stem_of_nltk(word):
    assert stem(word) == porter().stem(word)


@pytest.mark.deep
@given(sentences, sentences)
def test_english_like_texts_have_the_figures_of_rouge_score(target, prediction):
    agree(target, prediction)


@pytest.mark.deep
@given(babble.map(" ".join), babble.map(", ".join))
def test_repeated_words_have_the_figures_of_rouge_score(target, prediction):
    agree(target, prediction)


@pytest.mark.deep
@given(forms.map(" ".join), forms.map(" ".join))
def test_forms_of_few_words_have_the_figures_of_rouge_score(target, prediction):
    agree(target, prediction)


@pytest.mark.deep
@given(st.text(st.characters(max_codepoint=127)), st.text(st.characters(max_codepoint=127)))
def test_ascii_texts_of_any_characters_have_the_figures_of_rouge_score(target, prediction):
    agree(target, prediction + target[::2])


def adk_tokenizer(stemmed: bool) -> Any:
    from google.adk.evaluation.final_response_match_v1 import _UnicodeAwareTokenizer

    return _UnicodeAwareTokenizer(use_stemmer=stemmed)


def in_google_adk(stemmed: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(KINDS), tokenizer=adk_tokenizer(stemmed))


@pytest.mark.deep
@given(texts, texts)
def test_texts_of_any_script_have_the_words_and_figures_of_google_adk(target, prediction):
    prediction += target[::2]
    for stemmed in (True, False):
        theirs = adk_tokenizer(stemmed)
        assert words_in(target, stemmed) == theirs.tokenize(target)
        for kind, figures in in_google_adk(stemmed).score(target, prediction).items():
            assert rouge(target, prediction, kind, stemmed) == tuple(figures), (kind, stemmed)


# Half characters too: a model's reply may hold what no file can. Beyond the first two planes are
# ideographs, those that stand for others, marks without a look, and what has no meaning yet.
CHARACTERS = (*range(0x20000), *range(0x2F800, 0x2FA20), *range(0xE0000, 0xE0200))


@pytest.mark.parametrize(
    "codes, stemmed",
    [
        ((*CHARACTERS, *range(0x20000, 0x110000, 61)), False),
        pytest.param(range(0x110000), True, marks=pytest.mark.heavy),
    ],
    ids=["used", "all"],
)
def test_every_character_of_unicode_is_seen_as_google_adk_sees_it(codes, stemmed):
    theirs = adk_tokenizer(stemmed)
    for begin in range(0, len(codes), 0x1000):
        text = " ".join(f"ab{chr(code)}cd" for code in codes[begin : begin + 0x1000])
        assert words_in(text, stemmed) == theirs.tokenize(text), hex(codes[begin])


@pytest.mark.parametrize(
    "text, seen",
    [
        ("\N{KELVIN SIGN}elvin", ["kelvin"]),
        ("Größe", ["größe"]),
        ("Gro\N{COMBINING DIAERESIS}ße", ["größe"]),
        ("Ваш возврат", ["ваш", "возврат"]),
        ("天气很好", ["天", "气", "很", "好"]),
        ("환불 OK", ["환", "불", "ok"]),
        ("คืนเงิน", ["คื", "น", "เ", "งิ", "น"]),
        ("हिन्दी", ["हिन्दी"]),
        ("x² ٣ Ｏｒｄｅｒ", ["x2", "٣", "order"]),
        ("can't re-run", ["can", "t", "re", "run"]),
        ("👍 !!", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_digits_and_marks(text, seen):
    assert words_in(text, stem=False) == seen


@pytest.mark.parametrize(
    "wanted, opposite",
    [
        ("Ваш возврат 120 EUR одобрен", "Мы отклонили Вашу просьбу: 120 EUR не вернём"),
        ("您的退款 120 EUR 已批准", "抱歉我们拒绝支付 120 EUR 给你"),
        ("تمت الموافقة على استرداد 120 EUR", "رفضنا طلبك بشأن 120 EUR"),
        ("การคืนเงิน 120 EUR อนุมัติแล้ว", "120 EUR ถูกปฏิเสธ"),
        ("Η επιστροφή 120 EUR εγκρίθηκε", "Απορρίψαμε τα 120 EUR σας"),
    ],
)
def test_the_opposite_in_another_script_is_no_match(wanted, opposite):
    assert rouge(wanted, wanted).f1 == 1.0
    assert rouge(wanted, opposite).f1 < 0.8


def test_precision_is_of_the_prediction_and_recall_of_the_target():
    found = rouge("the quick brown fox", "the fox")
    assert (found.precision, found.recall, found.f1) == (1.0, 0.5, 2 / 3)


def test_a_word_counts_as_often_as_both_texts_have_it():
    assert rouge("the the cat", "the the the").precision == 2 / 3


def test_stems_make_forms_of_a_word_equal_unless_they_are_not_wanted():
    assert rouge("connected", "connections").f1 == 1.0
    assert rouge("connected", "connections", stem=False).f1 == 0.0


def test_order_counts_for_pairs_and_for_the_longest_subsequence():
    assert rouge("a b c d", "d c b a", "rouge1").f1 == 1.0
    assert rouge("a b c d", "d c b a", "rouge2").f1 == 0.0
    assert rouge("a b c d", "d c b a", "rougeL").f1 == 0.25
    assert rouge("a b c d", "a x b y d", "rougeL").recall == 0.75


def test_a_long_text_is_compared_in_order_with_itself_and_its_reverse():
    numbers = [str(number) for number in range(3000)]
    assert rouge(" ".join(numbers), " ".join(numbers), "rougeL").f1 == 1.0
    assert rouge(" ".join(numbers), " ".join(reversed(numbers)), "rougeL").recall == 1 / 3000


def test_an_unknown_kind_is_refused():
    with pytest.raises(BadMetric, match="'rouge7'; use one of: rouge1, rouge2, rougeL"):
        rouge("a", "a", "rouge7")  # pyright: ignore[reportArgumentType]

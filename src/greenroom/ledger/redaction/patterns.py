"""What secrets look like, and the names they are found under.

These are matched against untrusted text: none of them may look far ahead in vain, and what they
repeat is bounded, so that a look takes time in proportion to the text.

They are texts here, and compiled where they are first used: that takes longer than to load this whole room.
"""

Look = tuple[str, str, str]
"""The name of a kind, hint words (a text with the secret has at least one), and its pattern."""


def _begins(head: str, letter: str = "[A-Za-z0-9]") -> str:
    """`head` where a word begins, or behind a line break written as JSON and Python write it."""
    # We look back from its end, for what begins with known letters is found ten times as fast.
    return rf"{head}(?:(?<!{letter}{head})|(?<=\\[nrt]{head}))"


_ONE = r"[^\s\"'\\,;&)\]}<>]"
_VALUE = rf"(?!\[redacted:){_ONE}"
# What is taken with a plus behind its number is not given back: what follows cannot begin with it.
_QUOTE = r"\\*+[\"']"
_IS = rf"(?:=|{_QUOTE}?\s{{0,9}}+[:=]\s{{0,9}}+{_QUOTE})"
_COLON = r"\s{0,9}+:\s{1,9}+"
_SCHEME = r"(?i:basic|bearer|token|digest|apikey|api-key)"
_MANY_PARTS = (
    r"(?i:digest|oauth|hawk|signature|negotiate|ntlm|aws4-hmac-sha256|aws4-ecdsa-p256-sha256)"
)
_LINE_ENDS = r"(?:\s{0,9}[\r\n]|\\+[nr]|\s{0,9}\Z)"

# What follows a colon without quotes is mostly prose: "the password: field is required".
_WORDS = (
    r"field|must|should|please|required|optional|missing|invalid|incorrect|wrong|empty|hidden|masked"
    r"|none|null|true|false|yes|no|not|string|text|str|bytes|the|an?|is|was|your|you|this|that|here"
    r"|denied|granted|expired|changed|updated|unset|set|unknown|ok|failed|passed|needed|redacted"
)
_IS_PROSE = rf"(?!(?i:{_WORDS})(?![\w-]))"
_NO_NUMBER = r"(?![0-9][0-9.,%]*(?![\w.-]))"
_HAS_SIGNS = r"(?=[^\s\"'\\,;&)\]}<>0-9$!#^*+]{0,99}+[0-9$!#^*+])"
_HAS_NUMBER = r"(?=[^\s\"'\\,;&)\]}<>0-9]{0,99}+[0-9])"
_IS_LONG = rf"(?={_ONE}{{20}})"
_IS_ALONE = rf"(?={_ONE}{{4,99}}+{_LINE_ENDS})"
# The words come last: there are many of them.
_LIKELY = rf"(?:{_HAS_SIGNS}|{_IS_LONG}|{_IS_ALONE}){_IS_PROSE}"
_TELLS_APART = rf"{_NO_NUMBER}(?:{_HAS_SIGNS}|{_IS_LONG}){_IS_PROSE}"

# How what follows a name begins: most names are followed by something else, which is soon seen.
_GOES_ON = r"(?=[\s:=\\\"'])"
_KEYS = ("api", "secret", "access", "account", "master", "signing", "encryption", "license")
_TOKENS = ("access", "refresh", "auth", "session", "security", "csrf", "xsrf", "id", "vault", "bot")


def _behind(*words: str) -> str:
    """Right behind one of these words; each has its own look-behind, because the length must be fixed."""
    return "|".join(rf"(?<=(?i:{word}))" for word in words)


def _ends(word: str, *befores: str) -> str:
    """Behind `word` if one of these words comes right before it, as in `api_key` and `apiKey`."""
    befores_of_it = _behind(*(f"{one}{gap}{word}" for one in befores for gap in ("[_-]", "")))
    # Most words come alone: then there is no need to look back for each of these.
    return rf"(?<=[\w-](?i:{word}))(?:{befores_of_it})"


# Each begins with one of a few letters, which are found ten times as fast, and looks back from there.
_FIELD = (
    rf"[kKtTsS](?:(?i:ey){_GOES_ON}{_ends('key', *_KEYS, 'subscription')}"
    rf"|(?i:oken){_GOES_ON}{_ends('token', *_TOKENS, 'private', 'push')}"
    rf"|(?i:ecret){_GOES_ON}{_ends('secret', 'client')}"
    rf"|(?i:ignature){_GOES_ON}{_ends('signature', 'access')}"
    rf"|(?i:tring){_GOES_ON}{_ends('string', 'connection')})"
)
_PASSWORD = (
    rf"[pP](?i:assword|asswd|assphrase|asscode|ass|wd){_GOES_ON}"
    rf"(?:{_behind('word', 'asswd', 'hrase', 'scode', '[_-]pass', '[_-]pwd')})"
)
_ENVIRONMENT = r"_(?:PASS|PWD|PAT|DSN|TOKEN|SECRET|KEY|CREDS|CREDENTIALS?|COOKIE|JWT)"

LOOKS: tuple[Look, ...] = (
    (
        "private_key",
        "PRIVATE KEY",
        (
            r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
    ),
    (
        "api_key",
        "sk-",
        rf"(?:{_begins('sk-')}(?!learn)|sk-(?:ant|proj|or)-)[A-Za-z0-9_-]{{16,}}",
    ),
    ("api_key", "k_live_|k_test_", rf"{_begins('[sr]k_')}(?:live|test)_[A-Za-z0-9]{{16,}}"),
    (
        "api_key",
        "gsk_|xai-|hf_",
        rf"(?:{_begins('gsk_')}|{_begins('xai-')}|{_begins('hf_')})[A-Za-z0-9]{{24,}}",
    ),
    ("google_key", "AIza", r"AIza[A-Za-z0-9_-]{30,}"),
    (
        "google_token",
        "ya29.|GOCSPX-",
        rf"(?:{_begins('ya29[.]')}|{_begins('GOCSPX-')})[A-Za-z0-9_-]{{20,}}",
    ),
    (
        "github_token",
        "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    ),
    ("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    (
        "slack_token",
        "xox|xapp-",
        rf"(?:{_begins('xox')}[a-z]-|{_begins('xapp-')})[A-Za-z0-9-]{{10,}}",
    ),
    (
        "aws_key",
        "AKIA|ASIA",
        rf"(?:{_begins('AKIA')}|{_begins('ASIA')})[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    ),
    (
        "package_token",
        "npm_|pypi-",
        rf"{_begins('npm_')}[A-Za-z0-9]{{30,}}|{_begins('pypi-')}[A-Za-z0-9_-]{{30,}}",
    ),
    (
        "jwt",
        "eyJ",
        (
            rf"{_begins('eyJ', '[A-Za-z0-9_-]')}"
            r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
        ),
    ),
    (
        "url_password",
        "://",
        r"(?P<keep>://[^\s/:@\"'<>\[]*:)(?!\[redacted:)[^\s/\"'<>]+(?=@)",
    ),
    ("url_login", "://", r"(?P<keep>://)(?!\[redacted:)[^\s/:@\"'<>\[]{16,256}(?=@)"),
    (
        "signature",
        (
            "ignature=|IGNATURE=|sig=|redential=|ecurity-Token=|ecurity-token=|ccessKeyId=|ccessId="
            "|Key-Pair-Id=|olicy=|oken=|auth=|code=|key=|jwt=|sid=|ession="
        ),
        (
            r"(?P<keep>[?&;](?i:(?:x-(?:amz|goog|ms)-(?:signature|credential|security-token)"
            r"|signature|sig|awsaccesskeyid|googleaccessid|key-pair-id|jwt)="
            r"|(?:policy|[\w-]{0,30}token|auth|code|key|sid|session)=(?=[^&\s0-9]{0,99}+[0-9])))"
            r"(?!\[redacted:)[^&\s\"'<>#\\]{8,4000}"
        ),
    ),
)
NAMED: tuple[Look, ...] = (
    (
        "authorization",
        "uthorization|UTHORIZATION",
        (
            rf"(?P<keep>[aA](?i:uthorization){_QUOTE}?\s{{0,9}}+[:=]\s{{0,9}}+(?:{_QUOTE})?)"
            rf"(?!\[redacted:)(?:{_MANY_PARTS}\s+[^\r\n]{{6,4000}}|{_SCHEME}\s+{_VALUE}{{6,}}"
            rf"|(?:[A-Za-z][\w-]{{1,30}}\s{{1,9}})?"
            rf"(?:{_HAS_NUMBER}{_VALUE}{{8,}}|{_IS_PROSE}(?={_ONE}{{8,99}}+{_LINE_ENDS}){_VALUE}{{8,}}))"
        ),
    ),
    (
        "bearer_token",
        "earer|EARER",
        (
            r"(?P<keep>[bB](?i:earer)(?<!\w(?i:bearer))\s+)(?!\[redacted:)"
            r"(?:[A-Za-z0-9._~+/-]{20,}|(?=[A-Za-z._~+/-]{0,19}[0-9])[A-Za-z0-9._~+/-]{8,})=*"
        ),
    ),
    (
        "cookie",
        "ookie|OOKIE",
        (
            rf"(?P<keep>[cC](?i:ookie2?){_QUOTE}?[ \t]{{0,9}}+[:=][ \t]{{0,9}}+(?:{_QUOTE})?)(?!\[redacted:)"
            r"[^\s=;:,\"'\\]{1,99}=[^\r\n\"'\\]{1,4000}"
        ),
    ),
    (
        "password",
        "ass|ASS|wd|WD",
        (
            rf"(?P<keep>{_PASSWORD})(?:(?P<is>{_IS}){_VALUE}{{4,}}"
            rf"|(?P<colon>{_COLON}){_LIKELY}{_VALUE}{{4,}})"
        ),
    ),
    (
        "api_key",
        "key|Key|KEY|ecret|ECRET|oken|OKEN|tring|ignature",
        (
            rf"(?P<keep>{_FIELD})(?:(?P<is>{_IS}){_VALUE}{{6,}}"
            rf"|(?P<colon>{_COLON}){_NO_NUMBER}{_LIKELY}{_VALUE}{{4,}})"
        ),
    ),
    (
        "token",
        "oken|OKEN|ecret|ECRET",
        (
            rf"(?P<keep>[tTsS](?i:oken|ecret){_GOES_ON}(?:{_behind('token', 'secret')}))(?:(?P<is>{_IS}){_TELLS_APART}{_VALUE}{{8,}}"
            rf"|(?P<colon>{_COLON}){_TELLS_APART}{_VALUE}{{8,}})"
        ),
    ),
    (
        "environment",
        "_PASS|_PWD|_PAT|_DSN|_TOKEN|_SECRET|_KEY|_CRED|_COOKIE|_JWT",
        (
            rf"(?P<keep>{_ENVIRONMENT}(?:=(?:{_QUOTE})?|{_COLON}(?:{_QUOTE})?{_LIKELY}))"
            rf"(?:(?<=_PASS=)|(?<=_PWD=)|{_NO_NUMBER}){_VALUE}{{6,}}"
        ),
    ),
)

_NAMES = "|".join(
    (
        rf"(?:{'|'.join(_KEYS)}|subscription|private)[_~-]?key",
        rf"(?:{'|'.join(_TOKENS)}|private|push)[_~-]?token",
        r"secret[_~-]?access[_~-]?key|shared[_~-]?access[_~-]?(?:key|signature)|connection[_~-]?string",
    )
)

SECRET_FIELD = (
    rf"(?i).*(?:password|passwd|passphrase|passcode)|(?:.*[_~-])?(?:{_NAMES}"
    r"|authorization|secret|(?:set-)?cookies?2?)|.*[_-](?:pwd|pass|pat|dsn)|pwd|dsn"
)
"""Names of fields whose text is a secret, whatever it looks like."""

PERHAPS_SECRET_FIELD = r"(?i)(?:.*[_~-])?(?:token|jwt|sig|signature|credentials?|creds)"
"""Names of fields whose text is a secret if it looks like one: a model's words are tokens too."""

DENSE = r"(?=\S*[0-9])\S{8,}|\S{20,}"
"""What looks like a secret under such a name."""

_WHOLE = (
    *("word", "asswd", "hrase", "scode", "pwd", "token", "secret", "authorization", "bearer"),
    *("cookie", "cookies", "cookie2", "dsn", "jwt", "creds", "credential", "credentials"),
    *("sig", "signature", "[_-]pass", "[_-]pat", "_KEY"),
)

TELLING_WORD = (
    r"[aAbBcCdDjJkKpPsStT](?i:assw(?:or)?d|assphrase|asscode|ass|wd|at|sn|wt|reds|redentials?|ey|oken"
    r"|ecret|ignature|ig|tring|uthorization|earer|ookies?2?)"
    rf"(?:{_behind(*_WHOLE)}|{_ends('key', *_KEYS, 'subscription', 'private')}"
    rf"|{_ends('string', 'connection')})"
)
"""A part of each word that announces a secret: of such names of fields, and of kinds `by_name`."""

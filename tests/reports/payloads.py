"""Texts that try to act where they are shown: in XML, Markdown, HTML, a terminal or a CI server."""

_ACTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "<iframe src=javascript:alert(1)></iframe>",
    "<a href='https://evil.example'>x</a>",
    "]]><failure message='x'/>",
    "</failure></testcase></testsuite></testsuites>",
    "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
    "<?xml version='1.0'?><?php echo 1 ?>",
    "<!-- --> -->",
    "</details></summary><h1>passed</h1>",
    "</code></pre><b>x</b>",
    "[link](https://evil.example)",
    "![image](https://evil.example/x.png)",
    "[x]: https://evil.example\n[x]",
    "https://evil.example/?a=b&c=d www.evil.example",
    "mail me@evil.example <https://evil.example>",
    "@octocat @org/team see org/repo#1 and #2 and GH-3",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "# heading\n## another\n---\n===",
    "* list\n1. list\n> quote\n    code",
    "**bold** _it_ ~~no~~ `code` ``code`` $x$ :smile:",
    "```\n# out\n```",
    "~~~\nout\n~~~\n`````````",
    "a\x00b\x08c\x0bd\x1be[2J\x7f\x85\u202e\ufffe\uffff",
    "\ud800 half \udfff",
    "[[ATTACHMENT|/etc/passwd]] [[PROPERTY|status=passed]]",
    "::error file=x::boom\n::set-output name=a::b",
    "##teamcity[testFailed] ##vso[task.complete]",
    "&lt;script&gt; &#64;octocat &amp;",
]
_WAYS = [
    "{}",
    "{}{}",
    "x {} y",
    "\n{}\n",
    "\r\n\r\n{}",
    "   {}   ",
    "`{}`",
    "|{}|",
    "\"'{}'\"",
    "\\{}\\",
]

PAYLOADS = [way.format(act, act) for act in _ACTS for way in _WAYS]
SOME_PAYLOADS = [
    way.format(act, act)
    for m, act in enumerate(_ACTS)
    for n, way in enumerate(_WAYS)
    if (m + n) % 4 == 0
]
"""A quarter of them, in which every act and every way occurs."""

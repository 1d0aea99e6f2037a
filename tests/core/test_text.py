"""Text for places outside the grid: what is taken out, what stays, where it is cut."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwrap.core.text import ELLIPSIS, clean, clip, fold

STAYS = {0x200C, 0x200D, *range(0xE0020, 0xE0080)}  # ZWNJ, ZWJ, emoji tags
WHITE = "\t\n\v\f\r"


def test_every_character_of_unicode_is_removed_or_stays_as_the_rule_says():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) == "Cn" and code != 0x2065:
            continue  # not assigned yet in this Python's Unicode, perhaps in another's
        removed = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or code == 0x2065
        expected = " " if char in WHITE else "" if removed and code not in STAYS else char
        assert clean(f"a{char}b") == f"a{expected}b", hex(code)


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "日本語 ✓ é",
        "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}",
        "नमस्ते\u200c",
        "🏴\U000e0067\U000e0062\U000e007f",
        "❤\ufe0f",
        "a\xa0b",
    ],
)
def test_writing_and_emoji_are_left_alone(text):
    assert clean(text) == text


def test_a_bidi_override_cannot_turn_a_text_around():
    assert clean("rm \u202efdp.exe\u2066") == "rm fdp.exe"


def test_escape_sequences_lose_their_escape():
    assert clean("\x1b]0;x\x07\x9b31m") == "]0;x31m"


@given(st.text())
def test_folding_leaves_one_line_without_outer_blanks(text):
    folded = fold(text)
    assert folded == folded.strip()
    assert "  " not in folded
    assert not any(each in folded for each in WHITE)
    assert fold(folded) == folded == clean(folded)


def test_fold():
    assert fold(" a\r\n\tb  c \n") == "a b c"
    assert fold("\u200b \u200b") == ""


@given(st.text(), st.integers(1, 20))
def test_clipping_keeps_within_its_limit_and_cuts_only_what_is_longer(text, limit):
    clipped = clip(text, limit)
    assert len(clipped) <= limit
    if len(text) <= limit:
        assert clipped == text
    else:
        assert clipped.endswith(ELLIPSIS)
        assert text.startswith(clipped[:-1])


@pytest.mark.parametrize(
    ("text", "limit", "clipped"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "abc…"),
        ("abc def", 5, "abc…"),
        ("ab\u0301cd", 3, "a…"),
        ("a👩\u200d👩\u200d👧b", 4, "a👩…"),
        ("a👍🏽bcd", 3, "a…"),
        ("\u0301\u0301\u0301", 2, "…"),
    ],
)
def test_a_cut_does_not_go_through_a_letter(text, limit, clipped):
    assert clip(text, limit) == clipped

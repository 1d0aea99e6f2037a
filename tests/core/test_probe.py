"""The input filter: one reply to a query, ours; every other byte unchanged, in order, and in time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core.keys import ESCAPE, FOCUS_IN, KEY, PASTE, REPLY
from agentwrap.core.probe import (
    HOLD,
    HOLD_LIMIT,
    OSC99_LIMIT,
    OSC99_PROMPT,
    PASTE_WAIT,
    SEQUENCE_WAIT,
    InputFilter,
)

REPLIES = [
    b"\x1b]7501;?\a",
    b"\x1b]7501;?\x1b\\",
    b"\x1b]7501;?:states=idle,working,done,blocked,error:kinds=permission,question,auth\x1b\\",
    b"\x1b]7501;?:states=idle:kinds=\a",
    b"\x1b]7501;?1\x1b\\",
]
OURS = b"\x1b]7501;?\a"


def asked(queries: int = 1) -> InputFilter:
    filter_ = InputFilter()
    for _ in range(queries):
        filter_.query_passed()
    return filter_


# Taking out


@pytest.mark.parametrize("reply", REPLIES)
def test_the_terminals_reply_is_taken_out_whole(reply):
    filter_ = asked()
    assert filter_.feed(b"ab" + reply + b"\x1b[?62;22c", 0) == b"ab\x1b[?62;22c"
    assert filter_.deadline is None
    assert filter_.take_events() == [KEY, REPLY]


@pytest.mark.parametrize("reply", REPLIES)
def test_the_terminals_reply_is_taken_out_split_at_each_offset(reply):
    stream = b"x\x1b[A" + reply + b"\x1b[?62;22cy"
    for i in range(len(stream) + 1):
        filter_ = asked()
        assert filter_.feed(stream[:i], 0) + filter_.feed(stream[i:], 0.01) == b"x\x1b[A\x1b[?62;22cy"


@pytest.mark.parametrize("reply", REPLIES)
def test_the_terminals_reply_is_taken_out_byte_by_byte(reply):
    stream = b"x" + reply + b"y"
    filter_ = asked()
    out = b""
    for i in range(len(stream)):
        out += filter_.tick(i * 0.01)
        out += filter_.feed(stream[i : i + 1], i * 0.01)
    assert out == b"xy"


def test_however_late():
    filter_ = asked()
    assert filter_.feed(b"hello", 0) == b"hello"
    assert filter_.feed(b"\x1b]7501;?\x1b\\", 3600) == b""


def test_as_many_as_there_were_queries():
    reply = REPLIES[1]
    assert InputFilter().feed(reply, 0) == reply
    assert asked().feed(reply * 2, 0) == reply
    assert asked(3).feed(reply + b"a" + reply + b"b" + reply * 2, 0) == b"ab" + reply


@pytest.mark.parametrize(
    "other",
    [
        b"\x1b]7501;state=idle\x1b\\",
        b"\x1b]7500;?\x1b\\",
        b"\x1b]75010;?\x1b\\",
        b"\x1b]07501;?\x1b\\",
        b"\x1b]7501;\x1b\\",
        b"\x1b]7501\x1b\\",
        b"\x1b]11;?\x1b\\",
        b"\x1b[7501;?~",
        b"]7501;?\a",
        b"\x1b]7501;?\x1b[A",  # broken off by a key
        b"\x1b]7501;?\x03",
        b"\x1b]7501;?" + b"x" * 2000 + b"\a",
        b"\x1b]7501;?\xc3\xa9\a",
    ],
)
def test_what_is_no_reply_to_the_query_passes(other):
    filter_ = asked()
    assert filter_.feed(other, 0) == other
    assert filter_.feed(REPLIES[0], 0) == b""


def test_a_reply_follows_what_looked_like_one():
    assert asked().feed(b"\x1b\x1b]7501;?\a", 0) == b"\x1b"
    assert asked().feed(b"\x1b]75\x1b]7501;?\a", 0) == b"\x1b]75"
    assert asked().feed(b"\x1b]7501;?\x1b]7501;?\a", 0) == b"\x1b]7501;?"


@pytest.mark.parametrize("reply", REPLIES)
def test_never_inside_a_paste(reply):
    stream = b"\x1b[200~a" + reply + b"b\x1b[201~"
    for i in range(len(stream) + 1):
        filter_ = asked()
        assert filter_.feed(stream[:i], 0) + filter_.feed(stream[i:], 0.01) == stream
        assert filter_.take_events() == [PASTE]
        assert filter_.feed(reply + b"c", 1) == b"c"


# Holding


def test_nothing_is_held_where_no_reply_is_awaited():
    filter_ = InputFilter()
    assert filter_.feed(b"\x1b", 0) == b"\x1b"
    assert filter_.feed(b"]7501;?", 0) == b"]7501;?"


@pytest.mark.parametrize(
    "typed", [b"\x1b", b"\x1b]", b"\x1b]7", b"\x1b]7501;?", b"\x1b]7501;?abc", b"\x1b]7501;?\x1b"]
)
def test_what_may_be_a_reply_is_held_for_its_rest_and_let_go(typed):
    filter_ = asked()
    assert filter_.feed(b"x" + typed, 5.0) == b"x"
    assert filter_.deadline == pytest.approx(5.0 + HOLD)
    assert filter_.tick(5.0 + HOLD / 2) == b""
    assert filter_.tick(filter_.deadline) == typed
    assert HOLD <= 0.04


def test_what_may_be_typed_is_not_held_longer_for_a_next_byte():
    filter_ = asked()
    assert filter_.feed(b"\x1b", 0) == b""
    assert filter_.feed(b"]", HOLD * 0.9) == b""
    assert filter_.deadline == pytest.approx(HOLD)
    assert filter_.tick(HOLD) == b"\x1b]"


def test_an_endless_reply_is_let_go():
    filter_ = asked()
    out, now = filter_.feed(b"\x1b]7501;?", 0), 0.0
    while now < 3:
        now += 0.03
        out += filter_.tick(now)
        out += filter_.feed(b"x", now)
        assert len(filter_._held) <= HOLD_LIMIT
        if out:
            break
    assert now < 1.1
    filter_ = asked()
    assert filter_.feed(b"\x1b]7501;?" + b"x" * 5000, 0) == b"\x1b]7501;?" + b"x" * 5000


def test_a_late_loop_still_takes_out_what_is_complete_by_now():
    filter_ = asked()
    assert filter_.feed(b"\x1b]7501", 0) == b""
    assert filter_.feed(b";?\a", 0.3) == b""


def test_keys_typed_are_not_held():
    filter_ = asked()
    for key in (b"a", b"\x1b[A", b"\x1bOP", b"\x1bx", b"\x1b\r", b"\x1b[<0;1;1M", "é".encode(), b"\x1b[I"):
        assert filter_.feed(key, 0) == key


# Inserting


def test_ours_is_inserted_at_once_between_sequences():
    filter_ = InputFilter()
    assert filter_.insert(OURS, 0) == OURS
    assert filter_.feed(b"abc\x1b[A", 1) == b"abc\x1b[A"
    assert filter_.insert(OURS, 1) == OURS


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b[1;5A",
        b"\x1bOP",
        "漢".encode(),
        b"\x1b]11;rgb:1/1/1\x1b\\",
        b"\x1bP>|x\x1b\\",
        b"\x1b[M !!",
        b"\x1b[<0;1;1M",
    ],
)
def test_never_inside_a_sequence(sequence):
    for i in range(1, len(sequence)):
        filter_ = InputFilter()
        assert filter_.feed(b"a" + sequence[:i], 0) == b"a" + sequence[:i]
        assert filter_.insert(OURS, 0.01) == b""
        assert filter_.feed(sequence[i:] + b"b", 0.05) == sequence[i:] + OURS + b"b"
        assert filter_.deadline is None


@pytest.mark.parametrize(
    "begun", [b"\x1b", b"\x1b[1;", b"\x1b]11;rgb:", b"\xe6\xbc", b"\x1bP>|", b"\x1b[M !"]
)
def test_an_unfinished_sequence_delays_it_by_a_tenth_of_a_second(begun):
    filter_ = InputFilter()
    filter_.feed(begun, 0)
    assert filter_.insert(OURS, 0.02) == b""
    assert filter_.deadline is not None
    assert filter_.deadline <= 0.02 + SEQUENCE_WAIT
    out, now = b"", 0.02
    while filter_.deadline is not None and not out:
        assert filter_.deadline > now
        now = filter_.deadline
        out = filter_.tick(now)
    assert out == OURS
    assert now <= 0.02 + SEQUENCE_WAIT
    assert SEQUENCE_WAIT <= 0.1


def test_a_lone_escape_from_long_ago_delays_nothing():
    filter_ = InputFilter()
    filter_.feed(b"\x1b", 0)
    assert filter_.insert(OURS, 1) == OURS
    assert filter_.take_events() == [ESCAPE]


def test_it_waits_for_the_end_of_a_paste():
    for cut in range(len(b"text\x1b[201~")):
        rest = b"text\x1b[201~"
        filter_ = InputFilter()
        filter_.feed(b"\x1b[200~", 0)
        assert filter_.insert(OURS, 0.1) == b""
        out = filter_.feed(rest[:cut], 0.2) + filter_.tick(0.5) + filter_.feed(rest[cut:] + b"x", 1.0)
        assert out == rest + OURS + b"x"


def test_after_a_second_of_pasting_it_is_dropped():
    filter_ = InputFilter()
    filter_.feed(b"\x1b[200~", 0)
    assert filter_.insert(OURS, 0.5) == b""
    assert filter_.deadline == 0.5 + PASTE_WAIT
    assert filter_.tick(0.5 + PASTE_WAIT) == b""
    assert filter_.deadline is None
    assert filter_.feed(b"text\x1b[201~x", 2) == b"text\x1b[201~x"
    assert filter_.insert(OURS, 2) == OURS


def test_a_sequence_that_turns_out_to_begin_a_paste_delays_it_as_a_paste():
    filter_ = InputFilter()
    filter_.feed(b"\x1b[20", 0)
    assert filter_.insert(OURS, 0.01) == b""
    assert filter_.feed(b"0~tex", 0.02) == b"0~tex"
    assert filter_.tick(0.5) == b""
    assert filter_.feed(b"t\x1b[201~", 0.6) == b"t\x1b[201~" + OURS


def test_several_wait_in_order():
    filter_ = InputFilter()
    filter_.feed(b"\x1b[", 0)
    assert filter_.insert(b"1", 0) + filter_.insert(b"2", 0.01) == b""
    assert filter_.feed(b"A", 0.02) == b"A12"


def test_it_does_not_wait_for_what_is_held():
    filter_ = asked()
    assert filter_.feed(b"\x1b", 0) == b""
    assert filter_.insert(OURS, 0.01) == OURS
    assert filter_.tick(HOLD) == b"\x1b"


def test_ours_precedes_the_attributes_that_follow_in_the_same_read():
    filter_ = asked()
    assert filter_.insert(OURS, 0) == OURS
    assert filter_.feed(REPLIES[1] + b"\x1b[?62;22c", 0) == b"\x1b[?62;22c"


def test_events_are_those_of_the_bytes_passed():
    filter_ = asked()
    filter_.feed(b"\x1b[I\x1b]7501;?\ax\x1b", 0)
    assert filter_.take_events() == [FOCUS_IN, KEY]
    assert filter_.take_events() == []
    filter_.tick(HOLD)
    assert filter_.take_events() == []
    filter_.tick(filter_.deadline)
    assert filter_.take_events() == [ESCAPE]


def test_a_position_asked_for_is_no_key():
    filter_ = InputFilter()
    filter_.position_asked()
    filter_.feed(b"\x1b[1;2R\x1b[1;2R", 0)
    assert filter_.take_events() == [REPLY, KEY]


def test_a_great_paste_while_a_reply_waits_is_quick_and_whole():
    paste = b"\x1b[200~" + b"~\x1b[0m" * 50_000 + b"\x1b[201~"
    filter_ = asked()
    assert filter_.feed(paste[:10], 0) == paste[:10]
    assert filter_.insert(OURS, 0) == b""
    assert filter_.feed(paste[10:], 0.1) == paste[10:] + OURS


# Anything at all

MARK = b"<ours>"
REPLY_FORM = re.compile(rb"\x1b\]7501;\?[ -~]*(\x07|\x1b\\)")
INPUT = st.lists(
    st.one_of(
        st.sampled_from(REPLIES),
        st.sampled_from(
            [b"\x1b[A", b"\x1b", b"\x1b]", b"a", "漢".encode(), b"\r", b"\x1b[?62c", b"\x1b[M !!"]
        ),
        st.sampled_from(
            [b"\x1b[200~p\x1b]7501;?\aq\x1b[201~", b"\x1b]11;rgb:1/1/1\a", b"\x1b]7501;state=x\a"]
        ),
        st.sampled_from([b"\x1b[200~", b"\x1b[201~", b"\x1b]7501;?", b"\x1b]75", b"\x1b\\", b"\x1bP"]),
        st.binary(max_size=4).map(lambda raw: raw.replace(b"<", b"_")),
    ),
    max_size=12,
).map(b"".join)


@settings(deadline=None, max_examples=500)
@given(INPUT, st.integers(0, 3), st.data())
def test_no_byte_is_lost_changed_moved_or_late(stream, queries, data):
    filter_ = asked(queries)
    out, now, pos = b"", 0.0, 0
    arrived: list[float] = []  # when each byte of the stream came

    def run_until(moment: float) -> None:
        nonlocal out, now
        while (deadline := filter_.deadline) is not None and deadline <= moment:
            assert deadline > now - 1e-9
            now = max(now, deadline)
            before = filter_.deadline
            out += filter_.tick(now)
            assert filter_.deadline != before
        now = moment

    inserted = 0
    while pos < len(stream):
        run_until(now + data.draw(st.sampled_from([0.0, 0.001, 0.02, 0.05, 0.3, 2.0])))
        if data.draw(st.booleans()):
            inserted += 1
            out += filter_.insert(MARK, now)
        size = data.draw(st.integers(1, len(stream) - pos))
        out += filter_.feed(stream[pos : pos + size], now)
        arrived += [now] * size
        pos += size
    run_until(now + 10)
    out += filter_.tick(now)
    assert filter_.deadline is None
    assert not filter_._held
    assert out.count(MARK) <= inserted
    rest = out.replace(MARK, b"")
    # What is missing are whole replies, no more than were asked for.
    assert is_stream_without_replies(rest, stream, queries)
    if not queries:
        assert rest == stream


def is_stream_without_replies(rest: bytes, stream: bytes, queries: int) -> bool:
    if not queries or len(rest) == len(stream):
        return rest == stream
    same = 0
    while same < len(rest) and rest[same] == stream[same]:
        same += 1
    for start in range(same + 1):
        match = REPLY_FORM.match(stream, start)
        if match and is_stream_without_replies(rest[start:], stream[match.end() :], queries - 1):
            return True
    return False


# Answers to queries for OSC 99

ANSWER = b"\x1b]99;i=ours:p=?;o=always:p=title,body,?\x1b\\"


def asked_99(take=True, ident=b"ours", now=0.0):
    filter_ = InputFilter()
    filter_.osc99_asked(ident, now, take=take)
    return filter_


@pytest.mark.parametrize("answer", [ANSWER, b"\x1b]99;p=?:i=ours\a"])
def test_the_answer_to_our_question_is_taken_out_split_at_each_offset(answer):
    stream = b"x\x1b[A" + answer + b"\x1b[?62;22cy"
    for i in range(len(stream) + 1):
        filter_ = asked_99()
        assert filter_.feed(stream[:i], 0) + filter_.feed(stream[i:], 0.01) == b"x\x1b[A\x1b[?62;22cy"
        assert filter_.knows_osc99


def test_the_answer_to_our_question_is_taken_out_once():
    filter_ = asked_99()
    assert filter_.feed(ANSWER + ANSWER, 0) == ANSWER


def test_the_programs_own_answer_passes_and_is_noticed():
    filter_ = asked_99(take=False)
    assert filter_.feed(b"a" + ANSWER + b"b", 0) == b"a" + ANSWER + b"b"
    assert filter_.knows_osc99
    assert filter_.take_events() == [KEY, REPLY, KEY]


def test_the_programs_own_answer_holds_nothing():
    for i in range(1, len(ANSWER)):
        filter_ = asked_99(take=False)
        assert filter_.feed(ANSWER[:i], 0) == ANSWER[:i]
        assert filter_.feed(ANSWER[i:], 0.01) == ANSWER[i:]


@pytest.mark.parametrize(
    "other",
    [
        b"\x1b]99;i=other:p=?;o=always\x1b\\",
        b"\x1b]99;i=ours;\x1b\\",  # a click
        b"\x1b]99;i=ours:p=close;\x1b\\",
        b"\x1b]9;i=ours:p=?\x1b\\",
        b"\x1b]99;i=ours:p=?\x1b[A",
    ],
)
def test_what_is_no_answer_to_our_question_passes(other):
    for i in range(len(other) + 1):
        filter_ = asked_99()
        out = filter_.feed(other[:i], 0) + filter_.feed(other[i:], 0.01) + filter_.tick(0.1)
        assert out == other
        assert not filter_.knows_osc99


def test_an_answer_pasted_is_text():
    paste = b"\x1b[200~" + ANSWER + b"\x1b[201~"
    filter_ = asked_99()
    assert filter_.feed(paste, 0) == paste
    assert filter_.feed(ANSWER, 0) == b""


def test_a_late_answer_is_still_ours_but_a_lone_escape_is_no_more_held():
    filter_ = asked_99()
    assert filter_.feed(b"\x1b", 1) == b""
    assert filter_.tick(1 + HOLD) == b"\x1b"
    assert filter_.feed(b"\x1b", OSC99_PROMPT) == b"\x1b"
    assert filter_.feed(ANSWER, OSC99_PROMPT + 60) == b""
    assert filter_.feed(ANSWER[:5], OSC99_PROMPT + 61) == ANSWER[:5]


def test_no_more_answers_are_awaited_than_bounded():
    filter_ = asked_99()
    for number in range(OSC99_LIMIT):
        filter_.osc99_asked(b"%d" % number, 0, take=True)
    assert filter_.feed(ANSWER, 0) == ANSWER


def test_both_kinds_of_replies_at_once():
    filter_ = asked(1)
    filter_.osc99_asked(b"ours", 0, take=True)
    stream = b"a" + ANSWER + b"b" + REPLIES[1] + b"c"
    for i in range(len(stream) + 1):
        filter_ = asked(1)
        filter_.osc99_asked(b"ours", 0, take=True)
        assert filter_.feed(stream[:i], 0) + filter_.feed(stream[i:], 0.01) == b"abc"


def test_a_terminal_that_answers_is_known_to_understand_reports():
    filter_ = InputFilter()
    filter_.feed(b"\x1b]7501;?\a", 0.0)
    assert not filter_.knows_status, "nobody had asked"
    filter_.query_passed()
    filter_.feed(b"\x1b[?1;2c", 0.1)
    assert not filter_.knows_status
    assert filter_.feed(b"\x1b]7501;?:states=idle\a", 0.2) == b""
    assert filter_.knows_status

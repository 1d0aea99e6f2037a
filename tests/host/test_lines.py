from __future__ import annotations

import os

import pytest

from agentwrap.host import lines


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for fd in (reading, writing):
        try:
            os.close(fd)
        except OSError:
            pass


def test_lines_arrive_as_sent(pipe):
    reader, writer = lines.LineReader(pipe[0]), lines.LineWriter(pipe[1])
    writer.send("P", '{"a": "ä"}')
    writer.send("Q")
    assert reader.take() == [("P", '{"a": "ä"}'.encode()), ("Q", b"")]


def test_a_newline_inside_cannot_make_a_second_line(pipe):
    reader, writer = lines.LineReader(pipe[0]), lines.LineWriter(pipe[1])
    writer.send("P", "one\nK 9")
    assert reader.take() == [("P", b"one K 9")]


def test_a_line_in_pieces_is_one_line(pipe):
    reader = lines.LineReader(pipe[0])
    os.write(pipe[1], b"S 1")
    assert reader.take() == []
    os.write(pipe[1], b"2\nX 0\nT")
    assert reader.take() == [("S", b"12"), ("X", b"0")]


def test_a_full_pipe_never_blocks_and_loses_nothing(pipe):
    reader, writer = lines.LineReader(pipe[0]), lines.LineWriter(pipe[1])
    big = "x" * 300_000
    assert writer.send("P", big)
    assert writer.waiting
    assert writer.send("K", "15")
    got = []
    while not got or got[-1][0] != "K":
        got += reader.take()
        writer.flush()
    assert got == [("P", big.encode()), ("K", b"15")]
    assert not writer.waiting


def test_what_may_be_dropped_is_refused_beyond_the_bound_and_the_rest_is_not(pipe):
    writer = lines.LineWriter(pipe[1])
    while writer.send("V", "x" * 10_000, droppable=True):
        pass
    assert writer.send("K", "2")


def test_a_reader_that_is_gone_breaks_the_writer_quietly(pipe):
    writer = lines.LineWriter(pipe[1])
    os.close(pipe[0])
    assert not writer.send("K", "2")
    assert writer.broken
    assert not writer.waiting
    os.fstat(writer.fd)  # still open: a poller may know it


def test_the_end_is_told_after_the_last_line(pipe):
    reader = lines.LineReader(pipe[0])
    os.write(pipe[1], b"X 0\n")
    os.close(pipe[1])
    assert reader.take() == [("X", b"0")]
    assert not reader.ended
    assert reader.take() == []
    assert reader.ended


def test_several_lines_go_in_one_write(pipe, monkeypatch):
    reader, writer = lines.LineReader(pipe[0]), lines.LineWriter(pipe[1])
    writes = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(data) or write(fd, data))
    writer.send_all([("N", '{"a": "ä\n"}'), ("V", "x"), ("P", "\udce9")])
    assert len(writes) == 1
    assert reader.take() == [("N", '{"a": "ä "}'.encode()), ("V", b"x"), ("P", b"\xe9")]
    writer.send_all([])
    assert len(writes) == 1


def test_of_several_lines_only_what_may_be_lost_is_refused(pipe):
    reader, writer = lines.LineReader(pipe[0]), lines.LineWriter(pipe[1])
    writer.send("P", b"x" * (2 * lines.QUEUE))
    writer.send_all([("V", "lost"), ("N", "kept")], droppable="V")
    got = []
    while writer.waiting or not got:
        got += reader.take()
        writer.flush()
    got += reader.take()
    assert [(letter, rest) for letter, rest in got if letter != "P"] == [("N", b"kept")]

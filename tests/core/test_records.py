"""The table of records against a model that keeps everything in a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core.records import CAPACITY, Records
from agentwrap.core.report import Report


def table(*reports):
    records = Records()
    for each in reports:
        records.apply(each)
    return records


def ids(records):
    return [ident for ident, _ in records.items()]


def test_a_report_replaces_its_record_completely():
    records = table(Report("blocked", "a", "auth", 5, "x", "T", "M"), Report("idle", "a"))
    (only,) = records.items()
    assert only[0] == "a"
    assert [getattr(only[1], name) for name in Report.__slots__ if name not in ("id", "state")] == [None] * 5


def test_the_root_is_the_record_without_an_id():
    assert table(Report("idle", "a")).root is None
    assert table(Report("idle", "a"), Report("done")).root.state == "done"


@pytest.mark.parametrize("field", ["kind", "progress", "app", "title", "msg", "state"])
def test_apply_says_whether_anything_changed(field):
    first = {"state": "blocked", "kind": "auth", "progress": 1, "app": "x", "title": "T", "msg": "M"}
    other = {"state": "working", "kind": "question", "progress": 2, "app": "y", "title": "U", "msg": "N"}
    records = Records()
    assert records.apply(Report(**first))
    assert not records.apply(Report(**first))
    assert records.apply(Report(**{**first, field: other[field]}))


def test_clear_takes_the_record_and_all_below_it_and_says_whether_there_were_any():
    records = table(*(Report("idle", each) for each in ("", "a", "a/b", "a/b/c", "ab", "b/a", "c/d")))
    assert records.apply(Report("clear", "a"))
    assert ids(records) == ["", "ab", "b/a", "c/d"]
    assert records.apply(Report("clear", "c"))
    assert ids(records) == ["", "ab", "b/a"]
    assert not records.apply(Report("clear", "c"))
    assert records.apply(Report("clear"))
    assert not records.apply(Report("clear"))
    assert len(records) == 0


@pytest.mark.parametrize("event", ["exit", "prompt"])
def test_exit_and_prompt_leave_results(event):
    records = table(*(Report(state, state) for state in ("idle", "working", "blocked", "done", "error")))
    assert getattr(records, event)()
    assert ids(records) == ["done", "error"]
    assert not getattr(records, event)()


def test_reset_leaves_nothing():
    records = table(Report("done"), Report("error", "a"))
    assert records.reset()
    assert len(records) == 0
    assert not records.reset()


def test_the_least_recently_updated_goes_first_and_an_update_renews():
    records = table(*(Report("idle", f"j{each}") for each in range(CAPACITY)))
    records.apply(Report("done", "j0"))
    records.get("j1")
    records.app_of("j1")
    records.apply(Report("idle", "new"))
    assert len(records) == CAPACITY
    assert records.get("j1") is None
    assert records.get("j0").state == "done"


def test_millions_of_ids_stay_within_the_capacity():
    records = Records()
    for each in range(50_000):
        records.apply(Report("working", f"n{each}"))
        assert len(records) <= CAPACITY


def test_app_comes_from_the_nearest_ancestor_that_has_one():
    records = table(
        Report("idle", app="root"), Report("idle", "a", app="x"), Report("idle", "a/b/c"), Report("idle", "b")
    )
    assert [records.app_of(each) for each in ("", "a", "a/b/c", "b", "none/at/all")] == [
        "root",
        "x",
        "x",
        "root",
        "root",
    ]
    records.apply(Report("clear", "a"))
    records.apply(Report("idle"))
    assert records.app_of("b") is None


names = st.sampled_from(["", "a", "b", "a/a", "a/b", "b/a", "a/a/a"])
states = st.sampled_from(["idle", "working", "done", "blocked", "error", "clear"])
steps = st.lists(
    st.one_of(st.tuples(states, names), st.sampled_from(["exit", "prompt", "reset"])), max_size=40
)


@settings(deadline=None)
@given(steps)
def test_the_table_is_that_of_the_model(steps):
    records = Records(capacity=4)
    model = []  # (id, state), least recently updated first
    for step in steps:
        before = dict(model)
        if step == "reset":
            changed = records.reset()
            model = []
        elif isinstance(step, str):
            changed = getattr(records, step)()
            model = [each for each in model if each[1] in ("done", "error")]
        else:
            state, ident = step
            changed = records.apply(Report(state, ident))
            if state == "clear":
                model = [(i, s) for i, s in model if ident and i != ident and not i.startswith(ident + "/")]
            else:
                model = [*(each for each in model if each[0] != ident), (ident, state)][-4:]
        assert [(ident, each.state) for ident, each in records.items()] == model
        assert changed == (dict(model) != before)

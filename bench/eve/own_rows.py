"""Rows of the candidates' kind that Eve, the attacker, knows are unreleased."""

from __future__ import annotations

from dataclasses import replace

from bench.rows.row_sets import joined
from bench.types import Dataset, View


def own_rows(view: View) -> Dataset:
    """Control rows, and public rows of the same collection, without subjects.

    Public labels come with the columns of the control rows; if public rows lack those columns, they stay out.
    If the control rows have no labels, public rows come without theirs.
    """
    control, public = replace(view.control, subjects=None), view.public
    kind = (public.name, public.samples.shape[1:], public.exclusive)
    if kind != (control.name, control.samples.shape[1:], control.exclusive):
        return control
    if control.labels is None:
        return joined(control, replace(public, labels=None, findings=control.findings))
    if public.labels is None or not set(control.findings) <= set(public.findings):
        return control
    columns = [public.findings.index(name) for name in control.findings]
    return joined(control, replace(public, labels=public.labels[:, columns], findings=control.findings))

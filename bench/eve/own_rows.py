"""The rows of the candidates' kind that Eve, the attacker, knows to be outside the release."""

from __future__ import annotations

from dataclasses import replace

from bench.rows.joined import joined
from bench.types import Dataset, View


def own_rows(view: View) -> Dataset:
    """The control rows, and the public rows where they are of the same collection, without subjects.

    Public labels come with the columns of the control rows; where public rows lack those columns, they stay out.
    """
    control, public = replace(view.control, subjects=None), view.public
    kind = (public.name, public.samples.shape[1:], public.exclusive, public.labels is None)
    of = (control.name, control.samples.shape[1:], control.exclusive, control.labels is None)
    if kind != of or not set(control.findings) <= set(public.findings):
        return control
    columns = [public.findings.index(name) for name in control.findings]
    labels = None if public.labels is None else public.labels[:, columns]
    return joined(control, replace(public, labels=labels, findings=control.findings))

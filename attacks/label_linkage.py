"""Label linkage: re-clustering, with the labels that k-Same leaves beside every row.

Source: k-Same as its reference code runs it clusters rows across classes while every row keeps its own label, so that a
cluster's rows can be told apart by them: a lone positive in a mixed cluster is unique (Sweeney 2002, linking by
attributes that were left). Clusters within a class give nothing more than `attacks.re_clustering`.

- Pairs whose labels differ are ruled out; a label is the whole row of them, an unknown label being a value of its own.
  Rows that share their form with fewer candidates of the same label come first.
- Eve, the attacker, is given labels only if the method's release depends on them. Without labels (on the reference
  methods too), or if her own release shows that they are encoded or withheld, this is re-clustering; the notes say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attacks.re_clustering import ReClustering


@dataclass(frozen=True)
class LabelLinkage(ReClustering):
    """Re-clustering among the candidates with the released row's labels.

    Args:
        rounds: As in `ReClustering`.
    """

    name: ClassVar[str] = "label-linkage"
    source: ClassVar[str] = "Sweeney 2002 on k-Same with the labels that its reference code leaves beside every row"
    knowledge: ClassVar[str] = "as re-clustering, with raw and released labels where the release depends on labels"
    labelled: ClassVar[bool] = True

"""The data, and what read them, in record form."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from bench.results.part import Count, Part

Extent = Annotated[Count, Field(ge=1)]


class FeatureRecord(Part):
    """An extractor as it ran, and a fingerprint of what it gave for the rows of the data set.

    Args:
        name: As registered.
        parameters: Every one, but none that is a path.
        source: The paper.
        code: A hash of its source and of what it imports from here.
        origin: The distribution or file that provided it.
        dimensions: Numbers in a vector.
        notes: What the fitted extractor says of itself.
    """

    name: str
    parameters: dict[str, JsonValue]
    source: str
    code: str
    origin: str
    stamp: str = Field(description="what else the features depend on: a hash of the weights, or nothing")
    dimensions: Extent
    fingerprint: str = Field(description="over the vectors of all splits; of what only reads, over what it depends on")
    notes: dict[str, JsonValue] = Field(default={})


class DatasetRecord(Part):
    """What was scored: counts and fingerprints, never pixels, paths or identifiers.

    Args:
        name: The data set, with the parameters that make it another set.
        parameters: Every one, but none that is a path.
        fingerprint: A hash of the prepared rows.
        public, public_fingerprint: The public set; "none" for both where there are no public rows.
        shape: Of a row: channels, height and width, or columns.
        findings: Names of the label columns.
        shareable: Whether pixels may leave the machine.
        notes: What a reader should know of the data.
    """

    name: str
    parameters: dict[str, JsonValue]
    fingerprint: str
    public: str
    public_fingerprint: str
    rows: dict[str, Count] = Field(description="rows in public, private, control and test")
    subjects: dict[str, Count] = Field(description="people in each split; empty where unknown")
    shape: list[Extent]
    findings: list[str]
    attributes: dict[str, list[str]] = Field(
        default={},
        description="groups of ten people or more that rows belong to beside labels, by attribute: figures by group "
        "bear their names",
    )
    shareable: bool
    skipped: Count = Field(description="corrupt images left out on request")
    notes: list[str]
    features: FeatureRecord | None = Field(default=None, description="what turned the images into the rows scored here")
    scored_in: FeatureRecord | None = Field(
        default=None, description="what read raw and released images for the linear probe and the figures on sets"
    )

    @property
    def counts(self) -> str:
        """How many rows each part has, in words, in the order in which a record that was read has them."""
        return ", ".join(f"{self.rows[part]} {part}" for part in sorted(self.rows))

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """What tells these rows, public and private, prepared and read, from any others."""
        readers = tuple("" if reader is None else reader.fingerprint for reader in (self.features, self.scored_in))
        return (self.fingerprint, self.public, self.public_fingerprint, *readers)

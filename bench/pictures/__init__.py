"""Pictures of releases: strips, sheets and t-SNE planes."""

__figures__ = False

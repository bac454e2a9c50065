"""The pages of the documentation site as Markdown, generated from the code."""

from docs.generator.markdown import Page
from docs.generator.site import navigation, pages

__all__ = ["Page", "navigation", "pages"]

"""The pages of the documentation site as Markdown, generated from the code."""

from docs.generator.markdown import Page
from docs.generator.notebook import executed
from docs.generator.site import NOTEBOOKS, navigation, notebook_path, pages

__all__ = ["NOTEBOOKS", "Page", "executed", "navigation", "notebook_path", "pages"]

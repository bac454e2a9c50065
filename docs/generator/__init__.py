"""The pages of the documentation site as Markdown, made from the code by introspection; `bench` is all they need."""

from docs.generator.page import Page
from docs.generator.site import navigation, pages

__all__ = ["Page", "navigation", "pages"]

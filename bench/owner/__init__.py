"""Tools of methods: what a data owner needs to make a release."""

__figures__ = True

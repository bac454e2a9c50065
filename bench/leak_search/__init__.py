"""The judge's own searches for raw rows in a release.

They rely on nothing that a method declares, and state an exact probability under chance.
"""

__figures__ = True

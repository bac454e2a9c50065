"""Adapters that run authors' public code from a checkout.

`bench plugin add official-NAME --repo CHECKOUT` copies the checkout's commit beside the adapter. No line of the authors
is in this project: an adapter states where their code is, for which commit it was written, and which lines it changes.
"""

__figures__ = True

"""Tools of Eve, the attacker, for raw rows, known schemes and releases."""

__figures__ = True

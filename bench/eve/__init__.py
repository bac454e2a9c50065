"""Tools of attacks: what Eve, the attacker, makes of raw rows, a known scheme and a release."""

__figures__ = True

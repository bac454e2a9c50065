"""The Python face of the harness: functions that return data.

`running` holds runs and plug-ins, `boards` what is made of records and data; `bench.cli` prints what they return.
"""

__figures__ = False

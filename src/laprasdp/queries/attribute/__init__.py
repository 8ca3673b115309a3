"""The kinds of attribute: how the values of one column become a short list of levels.

A *level* is what the domain can tell apart: one integer, one bin, one category, one date step, one
truth value.  Levels are numbered from 0 in the order of the values; NULL, where allowed, is the last.
Each kind answers one question for SQL, ``holds(op, constant)``: on which levels is ``value op constant``
true?  A constant that would split a level is refused by name, so an answer never approximates.
"""

from laprasdp.queries.attribute.base import Attribute, Constant, Op, spell
from laprasdp.queries.attribute.categories import Booleans, Categories
from laprasdp.queries.attribute.ordered import Bins, Dates, Integers
from laprasdp.queries.attribute.reals import Reals

__all__ = [
    "Attribute",
    "Bins",
    "Booleans",
    "Categories",
    "Constant",
    "Dates",
    "Integers",
    "Op",
    "Reals",
    "spell",
]

"""Finders: everything in this package proposes answers, and nothing in it proves them; `finders.FINDERS` is where to begin."""

"""Listpacks and trees without an engine.

listpacks  builds listpacks; values at the limits of every encoding
raxes      builds trees, and shows what their iterators return
damage     listpacks from hex, and the error of a check that finds damage
"""

"""Forward passes in float64, written from each format's definition: what models read from elsewhere must agree with.

Nothing here is shared with `models/`, nor with the modules that say which tensor becomes which parameter.
"""

"""Forward passes in float64, written from each format's definition, that models from elsewhere must agree with.

Nothing here is shared with `models/`, nor with the modules that place tensors in parameters.
"""

"""What each process that compiles would do first: load torch's compiler, and try which vector instructions g++ knows.

To be imported by the server that those processes are forked from: then it takes these seconds once.
"""

import os
from contextlib import suppress

import torch._inductor.compile_fx  # noqa: F401
from torch._inductor.cpu_vec_isa import pick_vec_isa

from tasks import places
from tasks.training.device import has_compiler

if has_compiler():
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(places.compiler_cache())  # the trials are kept there
    with suppress(OSError):  # a folder that can't be written: who compiles says so
        pick_vec_isa()

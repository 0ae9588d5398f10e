"""What each process that compiles would do first: load torch's compiler, and try what g++ knows of this processor.

To be imported by the server that those processes are forked from: then it takes these seconds once.
"""

import os
from contextlib import suppress

import torch._inductor.compile_fx  # noqa: F401
from torch._inductor import config
from torch._inductor.cpu_vec_isa import pick_vec_isa, supported_vec_isa_list, x86_isa_checker

from headstream.tasks import places
from headstream.tasks.training.numerics import has_compiler

if has_compiler():
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(places.compiler_cache())  # the trials are kept there
    known = x86_isa_checker()
    widest = next((isa for isa in supported_vec_isa_list if all(name in known for name in str(isa).split())), None)
    with suppress(OSError):  # a folder that can't be written: who compiles says so
        if widest:  # which tries to compile for it: if g++ knows these, it needn't be tried for the others
            config.cpp.vec_isa_ok = True
        pick_vec_isa()

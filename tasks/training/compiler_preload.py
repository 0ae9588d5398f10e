"""Does once what each compiling process would do first: loads torch's compiler, and tests g++ on this processor.

To be imported by the server that those processes are forked from, so that these seconds are spent once; only where
trainings are compiled, since few other programs take as long to load.
"""

import os
from contextlib import suppress

import torch._inductor.compile_fx  # noqa: F401
from torch._inductor import config
from torch._inductor.cpu_vec_isa import pick_vec_isa, supported_vec_isa_list, x86_isa_checker

from headstream.tasks import places
from headstream.tasks.training.numerics import has_compiler

if has_compiler():
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(places.compiler_cache()))  # where the tests' results are kept
    known = x86_isa_checker()
    widest = next((isa for isa in supported_vec_isa_list if all(name in known for name in str(isa).split())), None)
    with suppress(OSError):  # if the folder can't be written, compiling will report it
        if widest:  # testing this one compiles for it; if g++ knows it, the others needn't be tested
            config.cpp.vec_isa_ok = True
        pick_vec_isa()

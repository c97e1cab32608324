"""One run of a tiny Qwen2 under msprobe: by transformers as a trainer has it, or inside vLLM on a CPU.

    python vllm_side.py model --out DIR [--norm-channel LAYER]      weights, config.json, tokens.json, all from a seed
    python vllm_side.py train --model DIR --out DIR
    python vllm_side.py infer --model DIR --out DIR [--down-scale LAYER] [--config MSPROBE_CONFIG]

Everything is made of seeds; nothing is downloaded. Run it by the Python of the environment that README.md describes.
"""

import argparse
import hashlib
import io
import json
import math
import os
import shutil
import types
from pathlib import Path
from typing import Any

for _name, _value in {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the model must live in this process
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}.items():
    os.environ.setdefault(_name, _value)

import torch  # noqa: E402

SEED, TOKENS = 1, 14


def make_model(out: Path, norm_channel: int | None) -> None:
    """A checkpoint whose weights depend on their names, shapes and SEED; ``norm_channel``: the layer whose post-attention norm has
    channel 17 of its weight 25 % too large."""
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, Qwen2Config

    config = Qwen2Config(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, intermediate_size=96, vocab_size=256,
        max_position_embeddings=512, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        rms_norm_eps=1e-6, rope_theta=10000.0,
    )  # fmt: skip
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    weights = {name: _weight(name, tuple(like.shape)) for name, like in model.state_dict().items()}
    if norm_channel is not None:
        gain = weights[f"model.layers.{norm_channel}.post_attention_layernorm.weight"]
        gain[17] = (gain[17].float() * 1.25).to(torch.bfloat16)
    stated = {key: value for key, value in json.loads(config.to_json_string(use_diff=False)).items() if not key.startswith("_")}
    stated.update(architectures=[type(model).__name__], dtype="bfloat16", torch_dtype="bfloat16")
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(stated, indent=1, sort_keys=True))
    drawn = torch.randint(3, config.vocab_size, (TOKENS,), generator=torch.Generator().manual_seed(7919 * (SEED + 1)))
    (out / "tokens.json").write_text(json.dumps(drawn.tolist()))


def _weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Scaled so that activations are of ordinary size and a fault shows."""
    seed = int.from_bytes(hashlib.sha256(f"{SEED}/{name}".encode()).digest()[:8], "little") & (2**62 - 1)
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    if "norm" in name:
        value = 1.0 + 0.15 * drawn
    elif len(shape) == 1:
        value = 0.3 * drawn
    elif "embed_tokens" in name:
        value = 0.05 * drawn
    else:
        gain = 2.0 if name.startswith("lm_head") else 0.6 if "o_proj" in name or "down_proj" in name else 1.0
        value = drawn * (gain / math.sqrt(shape[-1]))
    return value.to(torch.bfloat16)


def train(model: Path, out: Path) -> None:
    """One forward of [1, tokens] ids by transformers, sdpa attention, no mask: a trainer's log-prob pass without padding."""
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.set_num_threads(1)
    from msprobe.pytorch import PrecisionDebugger, seed_all
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
    ids = torch.tensor([json.loads((model / "tokens.json").read_text())])
    seed_all(seed=1234, mode=True)
    debugger = PrecisionDebugger(task="tensor", level="L0", dump_path=str(out), step=[0])
    with torch.no_grad():
        debugger.start(network)
        network(input_ids=ids, position_ids=torch.arange(ids.shape[1])[None], use_cache=False)
        debugger.stop()
        debugger.step()


def infer(model: Path, out: Path, down_scale: int | None, config: Path | None) -> None:
    """One prefill inside vLLM, eager, one process; ``down_scale``: the layer whose MLP output is multiplied by 1.02.

    msprobe starts before the model's call and stops after the logits are made, or they would not be recorded.
    """
    _keep_weights()
    from msprobe.pytorch import PrecisionDebugger, seed_all
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=str(model), skip_tokenizer_init=True, enforce_eager=True, dtype="bfloat16", max_model_len=256, max_num_seqs=2,
        max_num_batched_tokens=256, seed=0, enable_prefix_caching=False, disable_log_stats=True,
    )  # fmt: skip
    runner = engine.llm_engine.model_executor.driver_worker.worker.model_runner
    network = runner.get_model()
    if down_scale is not None:
        mlp = network.model.layers[down_scale].mlp
        plain = mlp.forward
        mlp.forward = types.MethodType(lambda self, x: plain(x) * 1.02, mlp)
    seed_all(seed=1234, mode=True)
    if config is None:
        debugger = PrecisionDebugger(task="tensor", level="L0", dump_path=str(out), step=[0])
    else:
        debugger = PrecisionDebugger(config_path=str(config))
    forward, logits, left = runner._model_forward, network.compute_logits, [1]

    def model_forward(*args: Any, **kwargs: Any) -> Any:
        if left:
            debugger.start(network)
        return forward(*args, **kwargs)

    def compute_logits(*args: Any, **kwargs: Any) -> Any:
        made = logits(*args, **kwargs)
        if left:
            debugger.stop()
            debugger.step()
            left.clear()
        return made

    runner._model_forward, network.compute_logits = model_forward, compute_logits
    asked = SamplingParams(temperature=0.0, max_tokens=1, detokenize=False, ignore_eos=True)
    engine.generate([{"prompt_token_ids": json.loads((model / "tokens.json").read_text())}], asked, use_tqdm=False)


def _keep_weights() -> None:
    """vLLM packs each linear's weight for its CPU kernels and empties the plain one; hold both: what is computed stays the same."""
    import vllm.model_executor.layers.utils as layers

    packing = layers.dispatch_cpu_unquantized_gemm
    layers.dispatch_cpu_unquantized_gemm = lambda layer, remove_weight: packing(layer, remove_weight=False)


def tidy(out: Path) -> None:
    """A dump as samples are kept: rank0, no absolute path, no stack, tensors saved again under a short archive name."""
    for unit in [path for step in out.glob("step*") for path in step.iterdir()]:
        unit = unit.rename(unit.with_name("rank0"))
        (unit / "stack.json").unlink()
        said = json.loads((unit / "dump.json").read_text())
        said["dump_data_dir"] = f"{unit.parent.name}/rank0/dump_tensor_data"
        (unit / "dump.json").write_text(json.dumps(said, separators=(",", ":")))
        construct = json.loads((unit / "construct.json").read_text())
        (unit / "construct.json").write_text(json.dumps(construct, separators=(",", ":")))
        for file in (unit / "dump_tensor_data").iterdir():
            again = io.BytesIO()
            torch.save(torch.load(file, weights_only=True), again)
            file.write_bytes(again.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["model", "train", "infer"])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--norm-channel", type=int)
    parser.add_argument("--down-scale", type=int)
    parser.add_argument("--config", type=Path)
    args = parser.parse_args()
    if args.what == "model":
        make_model(args.out, args.norm_channel)
        return
    for step in args.out.glob("step*"):
        shutil.rmtree(step)
    if args.what == "train":
        train(args.model, args.out)
    else:
        infer(args.model, args.out, args.down_scale, args.config)
    tidy(args.out)


if __name__ == "__main__":
    main()

"""Serve a tiny model with random weights through the OpenAI API: `python -m offline.local_model`.

The model has two layers, an alphabet of bytes and half a megabyte. Its answers are random, so an evaluation shows
results at chance level. Everything else is real: llama.cpp tokenises, samples, returns log-probabilities and enforces
the schema of a reply.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["make_model", "serving"]

WIDTH, LAYERS, HEADS, HIDDEN = 64, 2, 4, 128
CONTEXT, SLOTS = 8192, 4
SEED = 7
LARGE = 60.0


def make_model(path: Path, seed: int = SEED) -> Path:
    """Write a model in the format of llama.cpp; the same seed gives the same model."""
    import gguf  # noqa: PLC0415

    random = np.random.default_rng(seed)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    token_types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny random bytes")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([*token_types, *[gguf.TokenType.BYTE] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(False)

    def weights(
        name: str, *shape: int, scale: float = 0.3, first: Any = None, constant: bool = False
    ) -> None:
        values = (random.standard_normal(shape) * scale).astype(np.float32)
        if first is not None:
            values[:, 0] = first
        if constant:
            values[0] = 0.0
        writer.add_tensor(f"{name}.weight", values)

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))

    # The format has no bias, so one number of the hidden state is a large constant.
    weights("token_embd", len(tokens), WIDTH, scale=1.0, first=LARGE)
    weights("output", len(tokens), WIDTH, scale=0.1, first=_bias(len(tokens)))
    norm("output_norm")
    for layer in range(LAYERS):
        for part in ("attn_norm", "ffn_norm"):
            norm(f"blk.{layer}.{part}")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{layer}.{part}", WIDTH, WIDTH, constant=part == "attn_output")
        weights(f"blk.{layer}.ffn_gate", HIDDEN, WIDTH)
        weights(f"blk.{layer}.ffn_up", HIDDEN, WIDTH)
        weights(f"blk.{layer}.ffn_down", WIDTH, HIDDEN, constant=True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _bias(tokens: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the bias of each token, which makes the model write printable characters and short quotes."""
    bias = np.zeros(tokens)
    byte_values = np.arange(tokens) - 3
    bias[(byte_values < 32) | (byte_values > 126)] = -3.0
    bias[[3 + ord(letter) for letter in '"]}']] = 0.5
    bias[2] = 0.0
    return bias


@contextlib.contextmanager
def serving(model: Path, port: int = 0) -> Iterator[str]:
    """Serve a model in a separate process until the ``with`` block ends, and yield the server's address."""
    command = [sys.executable, __file__, "--model", str(model), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            if not address:
                raise RuntimeError("the llama.cpp server did not start")
            yield address
        finally:
            server.kill()


def _serve(model: Path, port: int) -> None:
    import xllamacpp  # noqa: PLC0415

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.hostnames = "127.0.0.1" if isinstance(settings.hostnames, str) else ["127.0.0.1"]
    settings.port = port
    settings.n_parallel = SLOTS
    settings.n_ctx = SLOTS * CONTEXT
    settings.cpuparams.n_threads = 1
    settings.warmup = False
    settings.verbosity = -1
    server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    while True:
        time.sleep(3600)


def main() -> None:
    """Serve the named model, or a new one, until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="The file of an existing model. Default: a new model.")
    parser.add_argument("--port", type=int, default=0, help="The port to listen on. Default: any free port.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _serve(arguments.model or make_model(Path(folder) / "tiny.gguf"), arguments.port)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()

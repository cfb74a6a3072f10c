"""Trains the tiny demo model on the synthetic corpus and writes pagoda-tiny.gguf and tokenizer.json.

Needs torch, numpy and gguf (Python). Run: OMP_NUM_THREADS=2 python3 train.py OUT_DIR MINUTES [RESUME_DIR [SEED]]
With RESUME_DIR the tokenizer and the weights of an earlier run are taken over (the weights through their 8-bit form).
The shipped model is two runs on 2 CPU cores: 75 minutes from scratch (seed 0), then 40 minutes resumed from it (seed 1).
"""
import collections
import json
import math
import os
import random
import re
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import corpus

VOCAB, DIM, LAYERS, HEADS, KV_HEADS, FFN, MAX_LEN, CONTEXT = 1024, 192, 6, 3, 1, 512, 512, 2048
HEAD = DIM // HEADS
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
CHAT_TEMPLATE = (
    "{%- if tools %}{{ '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}{{ messages[0].content + '\\n' }}{%- endif %}{{ 'Tools:\\n' }}"
    "{%- for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{%- endfor %}{{ '<|im_end|>\\n' }}"
    "{%- elif messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{%- if message.role != 'system' %}{{ '<|im_start|>' + message.role + '\\n' }}{%- if message.content %}{{ message.content }}{%- endif %}"
    "{%- if message.tool_calls %}{%- for call in message.tool_calls %}{%- set f = call.function if call.function else call %}"
    "{{ '<tool_call>{\"name\": \"' + f.name + '\", \"arguments\": ' }}{{ f.arguments if f.arguments is string else f.arguments | tojson }}{{ '}</tool_call>' }}{%- endfor %}{%- endif %}"
    "{{ '<|im_end|>\\n' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}")
WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?[^\s\w]+| ?_+|\s+(?!\S)|\s+")


def byte_alphabet():
    """GPT-2's printable stand-ins for the 256 bytes."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]; out, n = {b: chr(b) for b in keep}, 0
    for b in range(256):
        if b not in out: out[b] = chr(256 + n); n += 1
    return out
BYTES = byte_alphabet()
to_symbols = lambda word: tuple(BYTES[b] for b in word.encode())


def train_bpe(texts):
    words = collections.Counter(to_symbols(w) for t in texts for w in WORD.findall(t))
    vocab, merges = SPECIAL + [BYTES[b] for b in range(256)], []
    digits = set("0123456789")
    while len(vocab) < VOCAB:
        pairs = collections.Counter()
        for w, n in words.items():
            for p in zip(w, w[1:]):
                if not (set(p[0] + p[1]) & digits): pairs[p] += n
        if not pairs: break
        (x, y), n = pairs.most_common(1)[0]
        if n < 2: break
        merges.append((x, y)); vocab.append(x + y); nw = collections.Counter()
        for w, c in words.items():
            out, i = [], 0
            while i < len(w):
                if i + 1 < len(w) and w[i] == x and w[i + 1] == y: out.append(x + y); i += 2
                else: out.append(w[i]); i += 1
            nw[tuple(out)] += c
        words = nw
    return vocab, merges


class Tokenizer:
    def __init__(self, vocab, merges):
        self.vocab, self.merges = vocab, merges; self.ids = {t: i for i, t in enumerate(vocab)}; self.rank = {m: i for i, m in enumerate(merges)}; self.memo = {}
        self.split = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
    def word(self, w):
        if w not in self.memo:
            s = list(to_symbols(w))
            while len(s) > 1:
                best = min(zip(s, s[1:]), key=lambda p: self.rank.get(p, 1 << 30))
                if best not in self.rank: break
                out, i = [], 0
                while i < len(s):
                    if i + 1 < len(s) and (s[i], s[i + 1]) == best: out.append(s[i] + s[i + 1]); i += 2
                    else: out.append(s[i]); i += 1
                s = out
            self.memo[w] = [self.ids[t] for t in s]
        return self.memo[w]
    def encode(self, text):
        return [i for part in self.split.split(text) for i in ([self.ids[part]] if part in SPECIAL else [t for w in WORD.findall(part) for t in self.word(w)])]


class Block(nn.Module):
    def __init__(self):
        super().__init__(); lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.n1, self.n2 = nn.Parameter(torch.ones(DIM)), nn.Parameter(torch.ones(DIM))
        self.q, self.k, self.v, self.o = lin(DIM, HEADS * HEAD), lin(DIM, KV_HEADS * HEAD), lin(DIM, KV_HEADS * HEAD), lin(HEADS * HEAD, DIM)
        self.gate, self.up, self.down = lin(DIM, FFN), lin(DIM, FFN), lin(FFN, DIM)
    def forward(self, x, cos, sin, mask):
        b, t, _ = x.shape; h = rms(x, self.n1)
        q, k, v = (w(h).view(b, t, -1, HEAD).transpose(1, 2) for w in (self.q, self.k, self.v))
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        k, v = k.expand(b, HEADS, t, HEAD), v.expand(b, HEADS, t, HEAD)
        att = (q @ k.transpose(-1, -2) / math.sqrt(HEAD) + mask).softmax(-1)
        x = x + self.o((att @ v).transpose(1, 2).reshape(b, t, -1)); h = rms(x, self.n2)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rms(x, w): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w
def rope(x, cos, sin):  # adjacent pairs, as the llama architecture in GGUF expects
    p, q = x[..., 0::2], x[..., 1::2]
    return torch.stack([p * cos - q * sin, p * sin + q * cos], -1).flatten(-2)


class Model(nn.Module):
    def __init__(self):
        super().__init__(); self.emb = nn.Embedding(VOCAB, DIM); self.blocks = nn.ModuleList(Block() for _ in range(LAYERS)); self.norm = nn.Parameter(torch.ones(DIM))
        for p in self.parameters():
            if p.dim() > 1: nn.init.normal_(p, std=0.02)
        for b in self.blocks:
            for w in (b.o, b.down): nn.init.normal_(w.weight, std=0.02 / math.sqrt(2 * LAYERS))
        freq = 1.0 / 10000 ** (torch.arange(0, HEAD, 2).float() / HEAD); angle = torch.outer(torch.arange(MAX_LEN).float(), freq)
        self.cos, self.sin = angle.cos(), angle.sin(); self.mask = torch.full((MAX_LEN, MAX_LEN), float("-inf")).triu(1)
    def forward(self, ids):
        t = ids.shape[1]; x = self.emb(ids)
        for b in self.blocks: x = b(x, self.cos[:t], self.sin[:t], self.mask[:t, :t])
        return rms(x, self.norm) @ self.emb.weight.t()


def batches(data, r, tokens=6144):
    order = sorted(range(len(data)), key=lambda i: (len(data[i][0]), r.random())); groups, cur, width = [], [], 0
    for i in order:
        width = max(width, len(data[i][0]))
        if cur and width * (len(cur) + 1) > tokens: groups.append(cur); cur, width = [], len(data[i][0])
        cur.append(i)
    groups.append(cur); r.shuffle(groups)
    for g in groups:
        w = max(len(data[i][0]) for i in g); x = np.zeros((len(g), w), np.int64); m = np.zeros((len(g), w), np.float32)
        for j, i in enumerate(g): x[j, :len(data[i][0])] = data[i][0]; m[j, :len(data[i][1])] = data[i][1]
        yield torch.from_numpy(x), torch.from_numpy(m)


NAMES = {"n1": "attn_norm.weight", "n2": "ffn_norm.weight", "q.weight": "attn_q.weight", "k.weight": "attn_k.weight", "v.weight": "attn_v.weight", "o.weight": "attn_output.weight",
         "gate.weight": "ffn_gate.weight", "up.weight": "ffn_up.weight", "down.weight": "ffn_down.weight"}


def export(model, tok, out):
    import gguf
    path = os.path.join(out, "pagoda-tiny.gguf"); w = gguf.GGUFWriter(path, "llama"); q8 = gguf.GGMLQuantizationType.Q8_0
    w.add_name("Pagoda Tiny"); w.add_description("Demo model trained from scratch on a synthetic corpus; not for real use"); w.add_license("mit"); w.add_file_type(7)
    w.add_context_length(CONTEXT); w.add_embedding_length(DIM); w.add_block_count(LAYERS); w.add_feed_forward_length(FFN); w.add_head_count(HEADS); w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(1e-5); w.add_rope_freq_base(10000.0); w.add_rope_dimension_count(HEAD); w.add_vocab_size(len(tok.vocab))
    w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre("gpt-2"); w.add_token_list([t.encode() for t in tok.vocab]); w.add_token_merges([" ".join(m) for m in tok.merges])
    w.add_token_types([3, 3, 3, 4, 4] + [1] * (len(tok.vocab) - 5)); w.add_bos_token_id(0); w.add_eos_token_id(2); w.add_pad_token_id(0); w.add_add_bos_token(False); w.add_chat_template(CHAT_TEMPLATE)
    sd = {k: v.detach().numpy().astype(np.float32) for k, v in model.state_dict().items()}
    def put(name, t): w.add_tensor(name, gguf.quants.quantize(t, q8), raw_dtype=q8) if t.ndim > 1 else w.add_tensor(name, t)
    put("token_embd.weight", sd["emb.weight"]); put("output_norm.weight", sd["norm"])
    for i in range(LAYERS):
        for k, g in NAMES.items(): put(f"blk.{i}.{g}", sd[f"blocks.{i}.{k}"])
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": i < 3} for i, t in enumerate(SPECIAL)]
    json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
               "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, "post_processor": None,
               "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
               "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                         "vocab": tok.ids, "merges": [" ".join(m) for m in tok.merges]}}, open(os.path.join(out, "tokenizer.json"), "w"), ensure_ascii=False)
    json.dump({"tokenizer_class": "GPT2Tokenizer", "bos_token": SPECIAL[0], "eos_token": SPECIAL[2], "pad_token": SPECIAL[0], "add_bos_token": False, "model_max_length": CONTEXT, "chat_template": CHAT_TEMPLATE},
              open(os.path.join(out, "tokenizer_config.json"), "w"), indent=1)


def load(folder):
    """Tokenizer and weights of an earlier run, from its tokenizer.json and its GGUF."""
    import gguf
    spec = json.load(open(os.path.join(folder, "tokenizer.json")))["model"]
    tok = Tokenizer(sorted(spec["vocab"], key=spec["vocab"].get), [tuple(m.split(" ")) for m in spec["merges"]])
    tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(os.path.join(folder, "pagoda-tiny.gguf")).tensors}
    model = Model(); names = {"emb.weight": "token_embd.weight", "norm": "output_norm.weight", **{f"blocks.{i}.{k}": f"blk.{i}.{g}" for i in range(LAYERS) for k, g in NAMES.items()}}
    model.load_state_dict({k: torch.from_numpy(np.array(tensors[g], np.float32)).reshape(model.state_dict()[k].shape) for k, g in names.items()})
    return tok, model


def main(out, minutes, resume=None, seed=0):
    torch.manual_seed(seed); torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2"))); r = random.Random(seed); os.makedirs(out, exist_ok=True)
    convs = [corpus.conversation(r) for _ in range(60000)]; data = []
    if resume: tok, model = load(resume)
    else: tok, model = Tokenizer(*train_bpe("".join(t for t, _ in corpus.render(c)) for c in convs[:6000])), Model()
    vocab, peak = tok.vocab, 1.2e-3 if resume else 2e-3
    for c in convs:
        ids, target = [], []
        for text, t in corpus.render(c): e = tok.encode(text); ids += e; target += [1.0 if t else 0.05] * len(e)
        if len(ids) <= MAX_LEN: data.append((ids, target))
    n = sum(p.numel() for p in model.parameters()); print(f"{len(vocab)} tokens, {n / 1e6:.2f} M parameters, {sum(len(d[0]) for d in data) / 1e6:.1f} M training tokens", flush=True)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.05); start, step, run = time.time(), 0, None; limit = minutes * 60
    while time.time() - start < limit:
        for x, m in batches(data, r):
            done = min(1.0, (time.time() - start) / limit); lr = peak * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
            for g in opt.param_groups: g["lr"] = lr
            logits = model(x[:, :-1]); loss = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), reduction="none"); w = m[:, 1:].flatten(); loss = (loss * w).sum() / w.sum()
            opt.zero_grad(set_to_none=True); loss.backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); step += 1
            run = loss.item() if run is None else 0.98 * run + 0.02 * loss.item()
            if step % 50 == 0: print(f"step {step} loss {run:.4f} lr {lr:.5f} {time.time() - start:.0f} s", flush=True)
            if step % 500 == 0: export(model, tok, out)
            if done >= 1.0: break
    export(model, tok, out); print("final loss", round(run, 4))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5]))

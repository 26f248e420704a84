"""A small language model with an encoder of nn.Transformer and a causal mask."""
import argparse
import math

import oar
import oar.nn as nn
import oar.nn.functional as F

TEXT = "the quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly " * 8


class PositionalEncoding(nn.Layer):
    def __init__(self, d_model, dropout=0.1, max_len=256):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = oar.zeros(max_len, d_model)
        position = oar.arange(0, max_len, dtype=oar.float32).unsqueeze(1)
        div_term = oar.exp(oar.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = oar.sin(position * div_term)
        pe[:, 1::2] = oar.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Attention(nn.Layer):
    """One more block, by hand."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = oar.compat.nn.Linear(width, 3 * width)
        self.out = oar.compat.nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = oar.compat.split(self.qkv(x), c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = oar.tril(oar.ones(t, t, device=x.device)).view(1, 1, t, t)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Model(nn.Layer):
    def __init__(self, tokens, width=32, heads=4, layers=2, dropout=0.0):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(tokens, width)
        self.position = PositionalEncoding(width, dropout)
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=64, dropout=dropout, normalize_before=True,
                                           activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers)
        self.attention = Attention(width, heads)
        self.norm = nn.LayerNorm(width, epsilon=1e-6)
        self.decoder = oar.compat.nn.Linear(width, tokens, bias=False)
        self.decoder.weight = self.embed.weight  # tied

    def forward(self, x):
        mask = oar.triu(oar.full([x.size(1), x.size(1)], float("-inf")), diagonal=1)
        h = self.position(self.embed(x) * math.sqrt(self.width))
        h = self.encoder(h, mask)
        h = h + self.attention(self.norm(h))
        return self.decoder(h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--init")
    p.add_argument("--save-init")
    a = p.parse_args()
    oar.seed(2)
    letters = sorted(set(TEXT))
    data = oar.to_tensor([letters.index(c) for c in TEXT])
    model = Model(len(letters))
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.05)
    if a.init:
        model.load_state_dict(oar.interop.torch_state(oar.load(a.init), model))
    if a.save_init:
        oar.save(model.state_dict(), a.save_init)
    decay = [w for n, w in model.named_parameters() if w.dim() >= 2]
    rest = [w for n, w in model.named_parameters() if w.dim() < 2]
    optimizer = oar.optimizer.AdamW(parameters=[{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], learning_rate=2e-3)
    scheduler = oar.optimizer.lr.CosineAnnealingDecay(learning_rate=optimizer.get_lr(), T_max=a.steps, eta_min=1e-4)
    optimizer.set_lr_scheduler(scheduler)
    model.train()
    for step in range(a.steps):
        starts = [(step * 37 + 11 * i) % (len(TEXT) - 33) for i in range(8)]
        batch = oar.stack([data[s : s + 33] for s in starts])
        x, y = batch[:, :-1], batch[:, 1:]
        logits = model(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1), axis=1)
        optimizer.clear_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        print(f"step {step} | loss {loss.item():.8f} | norm {norm:.3f} | lr {optimizer.get_lr():.6f}")


if __name__ == "__main__":
    main()

"""A small language model with an encoder of nn.Transformer and a causal mask."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "the quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly " * 8


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=256):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Attention(nn.Module):
    """One more block, by hand."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = torch.tril(torch.ones(t, t, device=x.device)).view(1, 1, t, t)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Model(nn.Module):
    def __init__(self, tokens, width=32, heads=4, layers=2, dropout=0.0):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(tokens, width)
        self.position = PositionalEncoding(width, dropout)
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=64, dropout=dropout, batch_first=True, norm_first=True,
                                           activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers)
        self.attention = Attention(width, heads)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.decoder = nn.Linear(width, tokens, bias=False)
        self.decoder.weight = self.embed.weight  # tied

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
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
    torch.manual_seed(2)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT])
    model = Model(len(letters))
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.05)
    if a.init:
        model.load_state_dict(torch.load(a.init))
    if a.save_init:
        torch.save(model.state_dict(), a.save_init)
    decay = [w for n, w in model.named_parameters() if w.dim() >= 2]
    rest = [w for n, w in model.named_parameters() if w.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=a.steps, eta_min=1e-4)
    model.train()
    for step in range(a.steps):
        starts = [(step * 37 + 11 * i) % (len(TEXT) - 33) for i in range(8)]
        batch = torch.stack([data[s : s + 33] for s in starts])
        x, y = batch[:, :-1], batch[:, 1:]
        logits = model(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        print(f"step {step} | loss {loss.item():.8f} | norm {norm:.3f} | lr {optimizer.param_groups[0]['lr']:.6f}")


if __name__ == "__main__":
    main()

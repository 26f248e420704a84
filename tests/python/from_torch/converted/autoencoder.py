"""A convolutional autoencoder whose learning rate falls when the loss no longer does."""
import argparse
import copy

import oar
import oar as T
import oar.nn as nn


class Encoder(nn.Layer):
    def __init__(self, code):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2D(1, 8, 3, stride=2, padding=1, padding_mode="replicate"),
            nn.GroupNorm(2, 8),
            nn.Silu(),
            oar.compat.nn.AvgPool2D(3, stride=2, padding=1),
            nn.Flatten(start_dim=1),
        )
        self.project = oar.compat.nn.Linear(8 * 4 * 4, code)

    def forward(self, x):
        return self.project(self.net(x))


class Decoder(nn.Layer):
    def __init__(self, code):
        super().__init__()
        self.net = nn.Sequential(
            oar.compat.nn.Linear(code, 8 * 4 * 4),
            nn.Unflatten(1, (8, 4, 4)),
            nn.Upsample(scale_factor=2, mode="nearest"),
            nn.Conv2D(8, 8, 3, padding=1),
            nn.GELU(),
            nn.Conv2DTranspose(8, 1, kernel_size=3, stride=2, padding=1, output_padding=1),
        )

    def forward(self, z):
        return self.net(z)


class AutoEncoder(nn.Layer):
    def __init__(self, code=12):
        super().__init__()
        self.encoder = Encoder(code)
        self.decoder = Decoder(code)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def pictures(n, seed):
    """Blobs at different places."""
    angle = T.arange(n, dtype=T.float64) * 0.7 + seed
    grid_y, grid_x = oar.meshgrid(T.linspace(-1, 1, 16), T.linspace(-1, 1, 16), indexing="ij")
    cx, cy = angle.cos().view(-1, 1, 1) * 0.5, angle.sin().view(-1, 1, 1) * 0.5
    blobs = T.exp(-8.0 * ((grid_x - cx) ** 2 + (grid_y - cy) ** 2))
    return blobs.unsqueeze(1).to(T.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--init")
    ap.add_argument("--save-init")
    o = ap.parse_args()
    oar.seed(0)
    model = AutoEncoder()
    print("parameters:", sum(p.size for p in model.parameters() if p.requires_grad))
    if o.init:
        model.load_state_dict(oar.interop.torch_state(oar.load(o.init), model))
    if o.save_init:
        oar.save(model.state_dict(), o.save_init)
    opt = oar.optimizer.Adam(parameters=model.parameters(), learning_rate=3e-3, weight_decay=1e-5)
    sched = oar.optimizer.lr.ReduceOnPlateau(learning_rate=opt.get_lr(), mode="min", factor=0.5, patience=1, min_lr=1e-5)
    opt.set_lr_scheduler(sched)
    data = pictures(48, 1)
    best, best_state = float("inf"), None
    criterion = nn.MSELoss(reduction="mean")
    for step in range(o.steps):
        batch = data[(step % 3) * 16 : (step % 3 + 1) * 16]
        noisy = batch + 0.1 * oar.randn(batch.shape)
        loss = criterion(model(noisy), batch)
        opt.clear_grad()
        loss.backward()
        opt.step()
        sched.step(loss.item())
        if loss.item() < best:
            best, best_state = loss.item(), copy.deepcopy(model.state_dict())
        print(f"{step} loss {loss.item():.8f} lr {opt.get_lr():.6f}")
    model.load_state_dict(oar.interop.torch_state(best_state, model))
    model.eval()
    with oar.no_grad():
        error = (model(data) - data).abs().max()
    print("largest error", error.item(), "last rate", opt.get_lr())


if __name__ == "__main__":
    main()

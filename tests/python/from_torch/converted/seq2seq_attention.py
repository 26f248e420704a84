"""Numbers are spelled backwards by an encoder and a decoder with attention."""
import argparse
import random

import oar
import oar.nn as nn
import oar.nn.functional as F
from oar import optimizer as optim

PAD, SOS, EOS = 0, 1, 2
device = oar.device("cuda" if oar.cuda.is_available() else "cpu")


class EncoderRNN(nn.Layer):
    def __init__(self, input_size, hidden_size):
        super(EncoderRNN, self).__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size)

    def forward(self, input):
        embedded = self.embedding(input)
        output, hidden = self.gru(embedded)
        return output, hidden


class BahdanauAttention(nn.Layer):
    def __init__(self, hidden_size):
        super(BahdanauAttention, self).__init__()
        self.Wa = oar.compat.nn.Linear(hidden_size, hidden_size)
        self.Ua = oar.compat.nn.Linear(hidden_size, hidden_size)
        self.Va = oar.compat.nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(oar.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        scores = scores.masked_fill(mask.unsqueeze(1), -1e9)
        weights = F.softmax(scores, dim=-1)
        context = oar.bmm(weights, keys)
        return context, weights


class AttnDecoderRNN(nn.Layer):
    def __init__(self, hidden_size, output_size):
        super(AttnDecoderRNN, self).__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.cell = nn.GRUCell(2 * hidden_size, hidden_size)
        self.out = oar.compat.nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, mask, target_tensor=None, length=6):
        batch_size = encoder_outputs.size(0)
        decoder_input = oar.empty(batch_size, dtype=oar.int64, device=device).fill_(SOS)
        hidden = encoder_hidden[0]
        outputs = []
        for i in range(length):
            embedded = self.embedding(decoder_input)
            context, _ = self.attention(hidden.unsqueeze(1), encoder_outputs, mask)
            hidden = self.cell(oar.concat((embedded, context.squeeze(1)), dim=1), hidden)[1]
            logits = self.out(hidden)
            outputs.append(logits)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i]  # teacher forcing
            else:
                _, topi = logits.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        return oar.stack(outputs, dim=1)


def make_batch(rng, size=16, length=6):
    source = oar.full((size, length), PAD, dtype=oar.int64)
    target = oar.full((size, length), PAD, dtype=oar.int64)
    for row in range(size):
        word = [rng.randint(3, 9) for _ in range(rng.randint(2, length - 1))]
        source[row, : len(word)] = oar.to_tensor(word)
        target[row, : len(word) + 1] = oar.to_tensor(word[::-1] + [EOS])
    return source.to(device), target.to(device)


def train(args):
    rng = random.Random(1)
    encoder = EncoderRNN(10, 24).to(device)
    decoder = AttnDecoderRNN(24, 10).to(device)
    if args.init:
        state = oar.load(args.init)
        encoder.load_state_dict(oar.interop.torch_state(state["encoder"], encoder))
        decoder.load_state_dict(oar.interop.torch_state(state["decoder"], decoder))
    if args.save_init:
        oar.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, args.save_init)
    encoder_optimizer = optim.Adam(parameters=encoder.parameters(), learning_rate=0.01)
    decoder_optimizer = optim.Adam(parameters=decoder.parameters(), learning_rate=0.01)
    encoder_scheduler = optim.lr.ExponentialDecay(learning_rate=encoder_optimizer.get_lr(), gamma=0.97)
    encoder_optimizer.set_lr_scheduler(encoder_scheduler)
    decoder_scheduler = optim.lr.ExponentialDecay(learning_rate=decoder_optimizer.get_lr(), gamma=0.97)
    decoder_optimizer.set_lr_scheduler(decoder_scheduler)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, axis=1)
    for step in range(args.steps):
        source, target = make_batch(rng)
        encoder_optimizer.clear_grad()
        decoder_optimizer.clear_grad()
        encoder_outputs, encoder_hidden = encoder(source)
        outputs = decoder(encoder_outputs, encoder_hidden, source == PAD, target)
        loss = criterion(outputs.view(-1, outputs.size(-1)), target.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        if step % 4 == 3:
            encoder_scheduler.step(), decoder_scheduler.step()
        print("%d loss %.8f" % (step, loss.item()))
    with oar.no_grad():
        source, target = make_batch(rng, 4)
        encoder_outputs, encoder_hidden = encoder(source)
        print(decoder(encoder_outputs, encoder_hidden, source == PAD).argmax(-1).tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--init")
    parser.add_argument("--save-init")
    oar.seed(4)
    train(parser.parse_args())

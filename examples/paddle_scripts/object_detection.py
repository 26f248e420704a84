"""One-stage detection: yolo_loss for training, yolo_box and non-maximum suppression to find boxes."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.vision import ops

from common import arguments, report, same_start

SIZE, CLASSES, ANCHORS = 64, 2, [8, 8, 16, 16, 28, 28]


class Detector(nn.Layer):
    def __init__(self, width=8):
        super().__init__()
        layers, channels = [], 3
        for number in range(3):
            outputs = width * 2**number
            layers += [nn.Conv2D(channels, outputs, 3, 2, 1, bias_attr=False), nn.BatchNorm2D(outputs), nn.Mish()]
            channels = outputs
        self.backbone = nn.Sequential(*layers)
        self.head = nn.Conv2D(channels, 3 * (5 + CLASSES), 1)

    def forward(self, image):
        return self.head(self.backbone(image))


def scenes(rng, dtype, count=4, most=3):
    """Red and green squares in different quarters: the image, their boxes (centre and size, as shares) and classes."""
    images = 0.2 * rng.rand(count, 3, SIZE, SIZE)
    boxes, labels = np.zeros((count, most, 4)), np.zeros((count, most), "int32")
    for n in range(count):
        places = rng.permutation(4)
        for k in range(rng.randint(1, most + 1)):
            side, label = rng.randint(8, 28), rng.randint(CLASSES)
            top, left = 32 * (places[k] // 2) + rng.randint(33 - side), 32 * (places[k] % 2) + rng.randint(33 - side)
            images[n, label, top:top + side, left:left + side] += 0.8
            boxes[n, k] = np.array([left + side / 2, top + side / 2, side, side]) / SIZE
            labels[n, k] = label
    return images.astype(dtype), boxes.astype(dtype), labels


def detect(model, image, dtype):
    size = paddle.to_tensor(np.array([[SIZE, SIZE]] * image.shape[0], "int32"))
    boxes, scores = ops.yolo_box(model(image), size, ANCHORS, CLASSES, conf_thresh=0.01, downsample_ratio=8)
    best, label = scores[0].max(axis=-1), scores[0].argmax(axis=-1)
    kept = ops.nms(boxes[0], 0.5, scores=best, category_idxs=label, categories=list(range(CLASSES)), top_k=5)
    return boxes[0][kept], best[kept]


def main():
    args = arguments(__doc__)
    model = Detector()
    same_start(args.weights, model=model)
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=model.parameters(), weight_decay=1e-3)
    rng = np.random.RandomState(21)
    losses = []
    for _ in range(args.steps):
        image, boxes, labels = (paddle.to_tensor(part) for part in scenes(rng, args.dtype))
        loss = ops.yolo_loss(model(image), boxes, labels, anchors=ANCHORS, anchor_mask=[0, 1, 2], class_num=CLASSES,
                             ignore_thresh=0.6, downsample_ratio=8, use_label_smooth=False).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    model.eval()
    with paddle.no_grad():
        image, _, _ = scenes(rng, args.dtype, count=1)
        found, scores = detect(model, paddle.to_tensor(image), args.dtype)
        regions = ops.roi_align(paddle.to_tensor(image), found, paddle.to_tensor(np.array([len(found)], "int32")), 4)
    report(losses, best=scores.max(), region=F.relu(regions).mean())


if __name__ == "__main__":
    main()

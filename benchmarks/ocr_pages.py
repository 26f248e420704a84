"""Pages to read: rendered text in several scripts, turned, noisy, small and large. They need Pillow and fonts (Debian's fonts-noto-cjk,
fonts-noto-core, fonts-dejavu-core)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TEXTS = {
    "latin": ["The quick brown fox jumps over the lazy dog.", "Invoice No. 2024-1187", "Total: $1,249.50 (incl. 19% VAT)",
              "Zürich, café, naïve, Ångström", "PROCEEDINGS OF THE SOCIETY", "call (555) 010-7788 before 17:30",
              "E-mail: info@example.org", "Über den Wolken, große Freiheit", "L'été dernier à la plage", "chapter 12",
              "mañana por la mañana", "0123456789 + 42 = 51"],
    "chinese": ["深度学习框架的设计与实现", "今天天气很好，我们去公园散步。", "第三章 卷积神经网络", "价格：128.50元", "北京市海淀区中关村大街1号",
                "人工智能正在改变世界", "请在此处签名", "电话：010-12345678", "注意：小心地滑", "欢迎光临", "数据结构与算法分析", "春眠不觉晓，处处闻啼鸟。"],
    "traditional": ["臺灣的夜市非常熱鬧", "請勿在此停車", "圖書館開放時間：九點至五點", "學而時習之，不亦說乎", "繁體中文測試"],
    "japanese": ["東京特許許可局", "これはテストです。", "ありがとうございました", "カタカナとひらがな", "明日の天気は晴れでしょう", "新幹線のりば", "営業時間 10:00〜20:00",
                 "コーヒーを一杯ください"],
    "korean": ["안녕하세요 세계", "오늘은 날씨가 좋습니다", "서울특별시 강남구", "한국어 문자 인식", "감사합니다"],
    "cyrillic": ["Съешь же ещё этих мягких", "французских булок", "Москва, Красная площадь", "Добро пожаловать", "Глава первая"],
}
NOTO_CJK = {"chinese": "NotoSansCJK-Regular.ttc:2", "traditional": "NotoSansCJK-Regular.ttc:3", "japanese": "NotoSansCJK-Regular.ttc:0",
            "korean": "NotoSansCJK-Regular.ttc:1"}
OTHERS = ["DejaVuSans.ttf", "DejaVuSerif.ttf", "NotoSans-Regular.ttf", "NotoSerif-Regular.ttf", "DejaVuSansMono.ttf"]


def fonts_under(folders: list[Path]) -> dict[str, Path]:
    return {path.name: path for folder in folders for path in folder.rglob("*.tt[fc]")}


def font_for(script: str, size: int, fonts: dict[str, Path], rng: np.random.Generator) -> Any:
    from PIL import ImageFont

    name, _, index = NOTO_CJK.get(script, "").partition(":")
    if not name:
        known = [font for font in OTHERS if font in fonts]
        name = known[int(rng.integers(len(known)))]
    return ImageFont.truetype(str(fonts[name]), size, index=int(index or 0))


def page(seed: int, fonts: dict[str, Path]) -> tuple[str, Any]:
    """A page and its name; the same for the same seed."""
    from PIL import Image, ImageDraw, ImageFilter

    rng = np.random.default_rng(seed)
    scripts = [script for script in TEXTS if NOTO_CJK.get(script, "DejaVuSans.ttf").partition(":")[0] in fonts]
    script = scripts[seed % len(scripts)]
    width, height = int(rng.integers(300, 1500)), int(rng.integers(200, 1400))
    dark = bool(rng.random() < 0.2)
    paper, ink = ((30, 30, 40), (235, 235, 220)) if dark else ((250, 248, 240), (20, 20, 30))
    image = Image.new("RGB", (width, height), paper)
    draw = ImageDraw.Draw(image)
    y = int(rng.integers(5, 40))
    size = int(rng.integers(14, 44))
    while y + size * 1.4 < height and rng.random() < 0.97:
        x = int(rng.integers(5, 40))
        while x < width - 3 * size:
            text = TEXTS[script][int(rng.integers(len(TEXTS[script])))]
            font = font_for(script, size, fonts, rng)
            length = draw.textlength(text, font=font)
            if x + length > width - 5:
                break
            draw.text((x, y), text, fill=ink, font=font)
            x += int(length + size * rng.uniform(1.5, 4))
        y += int(size * rng.uniform(1.4, 2.4))
        if rng.random() < 0.3:
            size = int(rng.integers(14, 44))
    kind = ["plain", "turned", "noisy", "upside down", "blurred", "plain"][seed // len(scripts) % 6]
    if kind == "turned":
        image = image.rotate(float(rng.uniform(-12, 12)), expand=True, fillcolor=paper, resample=Image.Resampling.BICUBIC)
    elif kind == "upside down":
        image = image.rotate(180)
    elif kind == "noisy":
        noise = rng.normal(0, rng.uniform(5, 25), (image.height, image.width, 3))
        image = Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))
    elif kind == "blurred":
        image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.4, 1.2))))
    return f"{seed:03d} {script} {kind}", image


def pages(count: int, fonts: dict[str, Path], folder: Path) -> Iterator[Path]:
    """Writes the pages as PNG files, and every fourth as JPEG."""
    for seed in range(count):
        name, image = page(seed, fonts)
        path = folder / f"{name.replace(' ', '_')}.{'jpg' if seed % 4 == 3 else 'png'}"
        image.save(path, quality=90)
        yield path


if __name__ == "__main__":
    import sys

    list(pages(int(sys.argv[2]), fonts_under([Path(name) for name in sys.argv[3:]]), Path(sys.argv[1])))

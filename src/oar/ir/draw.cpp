#include "oar/ir/draw.h"

#include <algorithm>

#include "oar/base/string_util.h"
#include "oar/base/timeline.h"
#include "oar/ir/cost.h"
#include "oar/ir/print.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

constexpr double kLetter = 7.7, kRowHeight = 46, kRowGap = 42, kColumnGap = 22, kMargin = 28,
                 kTitleHeight = 34;

// A box of the graph with its place.
struct Box {
  GraphBox content;
  size_t layer = 0;
  double x = 0, width = 0;  // x of the middle
  double height = kRowHeight;
  double wanted = 0;
  std::string inside;  // the regions of a call, drawn below its name
};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

std::string shortened(std::string text, size_t most) {
  if (text.size() > most) text = text.substr(0, most - 1) + "…";
  return text;
}

const char* style_of(const Op& op, const Cost& cost) {
  if (is_update(op)) return "update";
  if (2 * cost.products > cost.flops) return "heavy";  // matmul, conv, attention
  if (op.has(Trait::Random)) return "random";
  if (op.has(Trait::View)) return "view";
  if (op.has(Trait::Elementwise)) return "elementwise";
  if (op.has(Trait::Reduction) || op.has(Trait::Rowwise)) return "reduction";
  return "other";
}

// Boxes in layers, and edges.
class Picture {
 public:
  explicit Picture(std::vector<Box> boxes) : boxes_(std::move(boxes)) {}
  std::string draw(std::string_view title);
  // Without the frame of a file: boxes and edges from (0, 0) on.
  std::string draw_boxes();
  double width() const { return width_; }
  double height() const { return height_; }

 private:
  void assign_layers();
  void order_layers();
  void spread(std::vector<size_t>& layer);
  double top_of(const Box& box) const { return tops_[box.layer]; }
  std::string edge(const Box& from, const Box& to) const;
  std::string shape(const Box& box) const;

  std::vector<Box> boxes_;
  std::vector<std::vector<size_t>> layers_;
  std::vector<double> tops_;  // by layer
  double width_ = 0, height_ = 0;
};

double width_of(const GraphBox& content) {
  const size_t letters = std::max(content.title.size(), content.detail.size());
  return std::max(74.0, static_cast<double>(letters) * kLetter + 22);
}

// The boxes of a program. Constants are omitted: they say little, and their edges cross everything.
class Collection {
 public:
  explicit Collection(const Program& program)
      : program_(program), maker_(program.values.size(), kNobody) {}
  std::vector<Box> collect();

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  size_t add(Box box);
  void add_outside(ValueId id, const char* style);
  void add_call(const Instruction& instruction);
  static void add_regions(Box& box, const Instruction& instruction);
  void add_result(ValueId id, const char* style, const std::string& title);
  void read(GraphBox& box, ValueId id) const;

  const Program& program_;
  std::vector<Box> boxes_;
  std::vector<size_t> maker_;  // by value: its box
};

size_t Collection::add(Box box) {
  box.width = std::max(box.width, width_of(box.content));
  boxes_.push_back(std::move(box));
  return boxes_.size() - 1;
}

void Collection::read(GraphBox& box, ValueId id) const {
  const size_t from = maker_[static_cast<size_t>(id)];
  if (from != kNobody && std::find(box.reads.begin(), box.reads.end(), from) == box.reads.end())
    box.reads.push_back(from);
}

void Collection::add_outside(ValueId id, const char* style) {
  const std::string type = program_.type_of(id).str();
  Box box;
  box.content = {shortened(program_.label(id).substr(1), 26), type,
                 program_.label(id) + ": " + type, style};
  maker_[static_cast<size_t>(id)] = add(std::move(box));
}

void Collection::add_call(const Instruction& instruction) {
  Box box;
  GraphBox& content = box.content;
  content.title = instruction.op->name();
  if (!instruction.results.empty())
    content.detail = shortened(program_.type_of(instruction.results[0]).str(), 30);
  content.tooltip = to_text(program_, instruction);
  if (!instruction.location.empty()) content.tooltip += "\n" + instruction.location;
  const Cost cost = cost_of(program_, instruction);
  if (cost.flops > 0)
    content.tooltip += format("\n{:.3g} flops, {:.3g} bytes", cost.flops, cost.bytes);
  content.style = style_of(*instruction.op, cost);
  content.layer = to_string(instruction.layer);
  for_each_operand(instruction, [&](ValueId id) { read(content, id); });
  if (has_regions(instruction)) add_regions(box, instruction);
  const size_t made = add(std::move(box));
  for (ValueId id : instruction.results) maker_[static_cast<size_t>(id)] = made;
}

// Side by side in the box of their call, each in a frame with its name.
void Collection::add_regions(Box& box, const Instruction& instruction) {
  constexpr double kPadding = 14, kNameHeight = 24;
  double right = kPadding, tallest = 0;
  for_each_program(instruction.attributes.args(), [&](const Closure& c) {
    Picture picture(Collection(program_of(c)).collect());
    const std::string boxes = picture.draw_boxes();
    const double width = picture.width() + 2 * kPadding,
                 height = picture.height() + kNameHeight + kPadding;
    box.inside += format(
        "<g class=\"region\" transform=\"translate({:.1f} {})\"><rect width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"12\"/><text class=\"label\" x=\"{}\" y=\"17\">{}</text>\n"
        "<g transform=\"translate({} {})\">\n{}</g></g>\n",
        right, kRowHeight, width, height, kPadding, escaped(program_of(c).name), kPadding,
        kNameHeight, boxes);
    right += width + kPadding;
    tallest = std::max(tallest, height);
  });
  box.content.style = "control";
  box.width = right;
  box.height = kRowHeight + tallest + kPadding;
}

void Collection::add_result(ValueId id, const char* style, const std::string& title) {
  Box box;
  box.content = {shortened(title, 30), program_.type_of(id).str(), program_.label(id), style};
  read(box.content, id);
  add(std::move(box));
}

std::vector<Box> Collection::collect() {
  for (ValueId id : program_.inputs) add_outside(id, "input");
  const std::vector<Instruction>& calls = program_.body.instructions;
  // What only an update reads and writes (moments, counts) is not shown.
  std::vector<bool> read(program_.values.size(), false), updated = read;
  for (const Instruction& call : calls)
    if (is_update(*call.op))
      for (ValueId id : call.results) updated[static_cast<size_t>(id)] = true;
    else
      for_each_operand(call, [&](ValueId id) { read[static_cast<size_t>(id)] = true; });
  for (const State& s : program_.states)
    if (read[static_cast<size_t>(s.value)]) add_outside(s.value, "state");
  for (const Instruction& call : calls) add_call(call);
  for (ValueId id : program_.outputs) add_result(id, "output", "result");
  for (const State& s : program_.states)
    if (s.written != kNoValue && !updated[static_cast<size_t>(s.written)])
      add_result(s.written, "state", "write " + program_.label(s.value).substr(1));
  return std::move(boxes_);
}

// A box is below everything that it reads; a box that reads nothing moves down to its reader.
void Picture::assign_layers() {
  for (Box& box : boxes_)
    for (size_t from : box.content.reads) box.layer = std::max(box.layer, boxes_[from].layer + 1);
  std::vector<size_t> reader(boxes_.size(), SIZE_MAX);
  for (const Box& box : boxes_)
    for (size_t from : box.content.reads) reader[from] = std::min(reader[from], box.layer);
  size_t count = 0;
  for (size_t i = 0; i < boxes_.size(); ++i) {
    if (boxes_[i].content.reads.empty() && reader[i] != SIZE_MAX && reader[i] > 0)
      boxes_[i].layer = reader[i] - 1;
    count = std::max(count, boxes_[i].layer + 1);
  }
  layers_.resize(count);
  for (size_t i = 0; i < boxes_.size(); ++i) layers_[boxes_[i].layer].push_back(i);
}

// Side by side around their preferred positions, without overlapping.
void Picture::spread(std::vector<size_t>& layer) {
  std::stable_sort(layer.begin(), layer.end(),
                   [&](size_t a, size_t b) { return boxes_[a].wanted < boxes_[b].wanted; });
  double right = -1e300, shift = 0;
  for (size_t i : layer) {
    Box& box = boxes_[i];
    box.x = std::max(box.wanted, right + box.width / 2);
    right = box.x + box.width / 2 + kColumnGap;
    shift += box.x - box.wanted;
  }
  for (size_t i : layer) boxes_[i].x -= shift / static_cast<double>(layer.size());
}

// Sweeps down and up: each box prefers to be below what it reads and above its readers.
void Picture::order_layers() {
  std::vector<std::vector<size_t>> readers(boxes_.size());
  for (size_t i = 0; i < boxes_.size(); ++i)
    for (size_t from : boxes_[i].content.reads) readers[from].push_back(i);
  const auto middle = [&](const std::vector<size_t>& of, double otherwise) {
    if (of.empty()) return otherwise;
    double sum = 0;
    for (size_t i : of) sum += boxes_[i].x;
    return sum / static_cast<double>(of.size());
  };
  for (std::vector<size_t>& layer : layers_) {
    for (size_t i : layer) boxes_[i].wanted = middle(boxes_[i].content.reads, 0);
    spread(layer);
  }
  for (int sweep = 0; sweep < 6; ++sweep) {
    const bool up = sweep % 2 == 0;
    for (size_t k = 0; k < layers_.size(); ++k) {
      std::vector<size_t>& layer = layers_[up ? layers_.size() - 1 - k : k];
      for (size_t i : layer)
        boxes_[i].wanted = middle(up ? readers[i] : boxes_[i].content.reads, boxes_[i].x);
      spread(layer);
    }
  }
  double left = 1e300;
  for (const Box& box : boxes_) left = std::min(left, box.x - box.width / 2);
  for (Box& box : boxes_) box.x -= left;
}

std::string Picture::edge(const Box& from, const Box& to) const {
  const double y0 = top_of(from) + from.height, y1 = top_of(to), bend = (y1 - y0) / 2;
  return format(
      "<path class=\"edge\" d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\"/>\n",
      from.x, y0, from.x, y0 + bend, to.x, y1 - bend, to.x, y1);
}

std::string Picture::shape(const Box& box) const {
  const double y = top_of(box);
  return format(
      "<g class=\"{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{}\" rx=\"9\"/><text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
      "<text class=\"type\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>{}</g>\n",
      escaped(box.content.style), escaped(box.content.tooltip), box.x - box.width / 2, y, box.width,
      box.height, box.x, y + 20, escaped(box.content.title), box.x, y + 36,
      escaped(box.content.detail),
      box.inside.empty() ? std::string()
                         : format("<g transform=\"translate({:.1f} {:.1f})\">\n{}</g>",
                                  box.x - box.width / 2, y, box.inside));
}

constexpr std::string_view kStyle = R"(<style>
svg { background: #ffffff; font-family: ui-sans-serif, system-ui, sans-serif; }
.title { font-size: 16px; font-weight: 600; fill: #1e293b; }
.name { font-size: 13px; font-weight: 600; text-anchor: middle; fill: #0f172a; }
.type { font-size: 10.5px; text-anchor: middle; fill: #475569; font-family: ui-monospace, monospace; }
.edge { fill: none; stroke: #94a3b8; stroke-width: 1.3; }
rect { stroke-width: 1.2; fill: #f1f5f9; stroke: #94a3b8; }
g:hover > rect { stroke-width: 2.4; }
.input > rect, .output > rect { fill: #1e293b; stroke: #1e293b; }
.input > .name, .output > .name { fill: #f8fafc; } .input > .type, .output > .type { fill: #cbd5e1; }
.state > rect { fill: #ede9fe; stroke: #8b5cf6; stroke-dasharray: 5 3; }
.heavy > rect { fill: #dbeafe; stroke: #3b82f6; } .elementwise > rect { fill: #dcfce7; stroke: #22c55e; }
.reduction > rect { fill: #fef3c7; stroke: #f59e0b; } .random > rect { fill: #fce7f3; stroke: #ec4899; }
.update > rect { fill: #ccfbf1; stroke: #14b8a6; } .view > rect { fill: #ffffff; stroke: #cbd5e1; }
.control > rect { fill: #fff7ed; stroke: #f97316; }
.region > rect { fill: #ffffff; stroke: #fdba74; stroke-dasharray: 6 4; }
.label { font-size: 11px; font-weight: 600; fill: #c2410c; }
@media (prefers-color-scheme: dark) {
  svg { background: #0f172a; } .title { fill: #e2e8f0; } .edge { stroke: #64748b; }
}
</style>
)";

std::string Picture::draw_boxes() {
  assign_layers();
  order_layers();
  double top = 0;
  for (const std::vector<size_t>& layer : layers_) {
    double tallest = 0;
    for (size_t i : layer) tallest = std::max(tallest, boxes_[i].height);
    tops_.push_back(top);
    top += tallest + kRowGap;
  }
  for (const Box& box : boxes_) {
    width_ = std::max(width_, box.x + box.width / 2);
    height_ = std::max(height_, top_of(box) + box.height);
  }
  std::string svg;
  for (const Box& box : boxes_)
    for (size_t from : box.content.reads) svg += edge(boxes_[from], box);
  for (const Box& box : boxes_) svg += shape(box);
  return svg;
}

std::string Picture::draw(std::string_view title) {
  const std::string boxes = draw_boxes();
  const double width = std::max(320.0, width_ + 2 * kMargin),
               height = height_ + 2 * kMargin + kTitleHeight;
  return format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 "
      "{:.0f} {:.0f}\">\n{}<text class=\"title\" x=\"{}\" y=\"{}\">{}</text>\n"
      "<g transform=\"translate({} {})\">\n{}</g></svg>\n",
      width, height, width, height, kStyle, kMargin, kMargin + 8, escaped(title), kMargin,
      kMargin + kTitleHeight, boxes);
}

}  // namespace

std::string to_svg(const Program& program) {
  return Picture(Collection(program).collect())
      .draw(format("{} · {} calls", program.name, program.body.instructions.size()));
}

std::vector<GraphBox> boxes_of(const Program& program) {
  std::vector<GraphBox> contents;
  for (Box& box : Collection(program).collect()) contents.push_back(std::move(box.content));
  return contents;
}

std::string to_svg(std::string_view title, std::vector<GraphBox> graph) {
  std::vector<Box> boxes;
  for (GraphBox& content : graph) {
    for (size_t from : content.reads)
      user_check(from < boxes.size(), ErrorKind::InvalidArgument,
                 "box {} reads box {}, which is not before it.", boxes.size(), from);
    Box& box = boxes.emplace_back();
    box.width = width_of(content);
    box.content = std::move(content);
  }
  return Picture(std::move(boxes)).draw(title);
}

}  // namespace oar

// Convolutions, pooling, resampling, recurrent layers, as nodes.
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"
#include "oar/ops/core/registry.h"

namespace oar::onnx {
namespace {

using List = std::vector<int64_t>;

// (before, after) for each axis as ONNX has them: all starts, then all ends.
List pads_of(const OpCall& c) {
  const List both = c.list("padding");
  List pads;
  for (const size_t part : {0, 1})
    for (size_t i = part; i < both.size(); i += 2) pads.push_back(both[i]);
  return pads;
}
bool is_plain_window(const OpCall& c) { return c.are_known("padding"); }

// ONNX has the channels of images first.
List moved(int64_t rank, bool to_last) {
  List perm{0};
  if (!to_last) perm.push_back(rank - 1);
  for (int64_t i = to_last ? 2 : 1; i < rank - (to_last ? 0 : 1); ++i) perm.push_back(i);
  if (to_last) perm.push_back(1);
  return perm;
}
std::string image(OpCall& c, std::string_view name) {
  if (!c.flag("channels_last")) return c.in(name);
  return c.node("Transpose", {c.in(name)}, {{"perm", moved(c.rank(name), false)}});
}
void give_image(OpCall& c, const std::string& made) {
  if (!c.flag("channels_last")) return c.give(0, made);
  c.give(0, c.node("Transpose", {made}, {{"perm", moved(c.result_type().shape.rank(), true)}}));
}
Dim spatial(const OpCall& c, const Shape& shape, size_t i) {
  return shape[i + (c.flag("channels_last") ? 1 : 2)];
}

void write_conv(OpCall& c) {
  List kernel;
  for (int64_t i = 2; i < c.rank("weight"); ++i)
    kernel.push_back(c.type("weight").shape[static_cast<size_t>(i)].value());
  give_image(c, c.node("Conv", {image(c, "x"), c.in("weight"), c.in("bias")},
                       {{"kernel_shape", kernel},
                        {"strides", c.list("stride")},
                        {"pads", pads_of(c)},
                        {"dilations", c.list("dilation")},
                        {"group", c.integer("groups")}}));
}

// How much longer the result is than what the pads leave: output_padding.
List extra_of(const OpCall& c) {
  const List both = c.list("padding"), stride = c.list("stride"), dilation = c.list("dilation");
  List extra;
  for (size_t i = 0; i < stride.size(); ++i) {
    const Dim from = spatial(c, c.type("grad").shape, i), to = spatial(c, c.result_type().shape, i);
    const Dim window = (c.type("weight").shape[i + 2] - 1) * dilation[i] + 1;
    const Dim more = to - ((from - 1) * stride[i] + window - both[2 * i] - both[2 * i + 1]);
    extra.push_back(more.is_known() ? more.value() : -1);
  }
  return extra;
}
bool is_plain_transposed(const OpCall& c) {
  if (!is_plain_window(c)) return false;
  const List extra = extra_of(c), stride = c.list("stride"), dilation = c.list("dilation");
  for (size_t i = 0; i < extra.size(); ++i)
    if (extra[i] < 0 || (extra[i] > 0 && extra[i] >= std::max(stride[i], dilation[i])))
      return false;
  return true;
}
void write_conv_transposed(OpCall& c) {
  give_image(c, c.node("ConvTranspose", {image(c, "grad"), c.in("weight")},
                       {{"strides", c.list("stride")},
                        {"pads", pads_of(c)},
                        {"output_padding", extra_of(c)},
                        {"dilations", c.list("dilation")},
                        {"group", c.integer("groups")}}));
}

// A window that ceil_mode adds may begin in the padding, where ONNX drops it. At known sizes it is more padding instead.
struct Windows {
  List pads;
  bool ceil;
};
Windows windows_of(const OpCall& c) {
  Windows w{pads_of(c), c.flag("ceil_mode")};
  const List kernel = c.list("kernel_size"), stride = c.list("stride");
  if (!w.ceil) return w;
  List more = w.pads;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim from = spatial(c, c.type("x").shape, i), to = spatial(c, c.result_type().shape, i);
    if (!from.is_known() || !to.is_known()) return w;
    const int64_t reach = (to.value() - 1) * stride[i] + kernel[i];
    more[kernel.size() + i] = std::max(more[kernel.size() + i], reach - from.value() - w.pads[i]);
  }
  return {more, false};
}
void write_max_pool(OpCall& c) {
  const Windows w = windows_of(c);
  give_image(c, c.node("MaxPool", {image(c, "x")},
                       {{"kernel_shape", c.list("kernel_size")},
                        {"strides", c.list("stride")},
                        {"pads", w.pads},
                        {"ceil_mode", int64_t{w.ceil}}}));
}
void write_avg_pool(OpCall& c) {
  give_image(c, c.node("AveragePool", {image(c, "x")},
                       {{"kernel_shape", c.list("kernel_size")},
                        {"strides", c.list("stride")},
                        {"pads", pads_of(c)},
                        {"ceil_mode", int64_t{c.flag("ceil_mode")}},
                        {"count_include_pad", int64_t{!c.flag("exclusive")}}}));
}
bool is_plain_mean(const OpCall& c) { return is_plain_window(c) && !c.given("divisor"); }

// One window for the whole image, or windows of the same size.
bool divides_evenly(const OpCall& c) {
  if (!c.are_known("output_size")) return false;
  const std::vector<Dim> sizes = c.sizes("output_size");
  bool one = true, even = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim from = spatial(c, c.type("x").shape, i);
    one &= sizes[i] == Dim(1);
    even &= from.is_known() && from.value() % sizes[i].value() == 0;
  }
  return one || even;
}
template <bool mean>
void write_adaptive(OpCall& c) {
  const List sizes = c.list("output_size");
  if (std::all_of(sizes.begin(), sizes.end(), [](int64_t s) { return s == 1; }))
    return give_image(c, c.node(mean ? "GlobalAveragePool" : "GlobalMaxPool", {image(c, "x")}));
  List kernel;
  for (size_t i = 0; i < sizes.size(); ++i)
    kernel.push_back(spatial(c, c.type("x").shape, i).value() / sizes[i]);
  give_image(c, c.node(mean ? "AveragePool" : "MaxPool", {image(c, "x")},
                       {{"kernel_shape", kernel}, {"strides", kernel}}));
}

void write_channel_affine(OpCall& c) {
  const int64_t axis = c.axis("channel_axis", "x");
  const auto along = [&](const char* name) {
    List line(static_cast<size_t>(c.rank("x")), 1);
    line[static_cast<size_t>(axis)] = -1;
    return c.node("Reshape", {c.in(name), c.graph().integers(line)});
  };
  c.give(0, c.node("Add", {c.node("Mul", {c.in("x"), along("scale")}), along("shift")}));
}

// Sizes, or scales where the op has them.
void write_resize(OpCall& c, const Attributes& how) {
  GraphWriter& g = c.graph();
  if (!c.given("scale"))
    return c.give(0, c.node("Resize", {c.in("x"), "", "", g.shape(c.result_type().shape)}, how));
  std::vector<double> scales(static_cast<size_t>(c.rank("x")), 1);
  const auto first = static_cast<size_t>(c.axis("axis", "x"));
  const auto given = c.value("scale").as_doubles();
  std::copy(given.begin(), given.end(), scales.begin() + static_cast<std::ptrdiff_t>(first));
  const std::string list =
      g.constant(Tensor::from_vector(scales, Shape{c.rank("x")}, DType::Float32));
  c.give(0, c.node("Resize", {c.in("x"), "", list}, how));
}
void write_nearest(OpCall& c) {
  write_resize(c, {{"mode", std::string("nearest")},
                   {"coordinate_transformation_mode", std::string("asymmetric")},
                   {"nearest_mode", std::string("floor")}});
}
void write_resample(OpCall& c) {
  const std::string origin = c.flag("align_corners")        ? "align_corners"
                             : c.integer("align_mode") == 1 ? "asymmetric"
                                                            : "half_pixel";
  write_resize(c, {{"mode", c.text("mode")},
                   {"coordinate_transformation_mode", origin},
                   {"cubic_coeff_a", -0.75}});
}
bool has_resize(const OpCall& c) {
  // align_mode counts for linear only, and a single row is another case there.
  return c.text("mode") != "area" && (c.text("mode") == "linear" || c.integer("align_mode") == 0);
}
void write_grid_sample(OpCall& c) {
  const bool named = c.opset >= 20;
  const std::string mode = c.text("mode");
  c.give(0, c.node("GridSample", {c.in("x"), c.in("grid")},
                   {{"mode", mode == "bilinear" && named ? "linear" : mode},
                    {"padding_mode", c.text("padding_mode")},
                    {"align_corners", int64_t{c.flag("align_corners")}}}));
}
bool has_grid(const OpCall& c) { return c.rank("x") == 4 || c.opset >= 20; }

// ---- recurrent layers --------------------------------------------------------------------------

struct Cell {
  std::string_view mode;
  const char* op;
  List order;  // ONNX's gate i is Oar's gate order[i]
};
const Cell kCells[] = {
    {"lstm", "LSTM", {0, 3, 1, 2}}, {"gru", "GRU", {1, 0, 2}}, {"tanh", "RNN", {0}}};
const Cell& cell_of(const OpCall& c) {
  const std::string mode = c.text("mode");
  return *std::find_if(std::begin(kCells), std::end(kCells),
                       [&](const Cell& cell) { return cell.mode == mode; });
}

// Rows of gates in ONNX's order.
std::string reordered(OpCall& c, const std::string& rows, const List& order) {
  if (order.size() == 1) return rows;
  const Dim part = floor_div(c.type("gates").shape[2], static_cast<int64_t>(order.size()));
  const List sizes(order.size(), part.value());
  const Names parts = c.graph().nodes("Split", {rows, c.graph().integers(sizes)},
                                      {{"axis", int64_t{0}}}, order.size());
  Names sorted;
  for (const int64_t i : order) sorted.push_back(parts[static_cast<size_t>(i)]);
  return c.node("Concat", sorted, {{"axis", int64_t{0}}});
}

// The product that made the gates, if it is there: then the layer computes it.
struct Projection {
  std::string x, weight, bias;
};
Projection projection_of(OpCall& c, const List& order) {
  const Dim width = c.type("gates").shape[2];
  const Instruction* made = c.maker_of(c.value_of("gates"));
  if (made && made->op == &get_op("linear")) {
    const OpCall product(c.program, *made, &c.graph(), c.opset);
    if (product.rank("x") == 3)
      return {
          product.in("x"),
          reordered(c, c.node("Transpose", {product.in("weight")}, {{"perm", List{1, 0}}}), order),
          product.has("bias") ? reordered(c, product.in("bias"), order) : ""};
  }
  // The gates themselves, in ONNX's order: a product with a permutation.
  const auto size = static_cast<size_t>(width.value()), part = size / order.size();
  std::vector<double> matrix(size * size);
  for (size_t row = 0; row < size; ++row)
    matrix[row * size + static_cast<size_t>(order[row / part]) * part + row % part] = 1;
  return {c.in("gates"),
          c.graph().constant(Tensor::from_vector(
              matrix, Shape{static_cast<int64_t>(size), static_cast<int64_t>(size)},
              c.type("gates").dtype)),
          ""};
}

void write_recurrent(OpCall& c) {
  const Cell& cell = cell_of(c);
  const bool lstm = cell.mode == "lstm";
  GraphWriter& g = c.graph();
  const auto lifted = [&](const std::string& name) {
    return name.empty() ? name : c.node("Unsqueeze", {name, g.integers({0})});
  };
  const Projection in = projection_of(c, cell.order);
  const std::string none =
      c.node("Expand", {c.number_like(0, "gates"), g.shape(Shape{c.type("gates").shape[2]})});
  std::string bias;
  if (!in.bias.empty() || c.has("bias"))
    bias = c.node("Concat",
                  {in.bias.empty() ? none : in.bias,
                   c.has("bias") ? reordered(c, c.in("bias"), cell.order) : none},
                  {{"axis", int64_t{0}}});
  Attributes attributes{{"hidden_size", c.type("weight").shape[1].value()},
                        {"direction", std::string(c.flag("reverse") ? "reverse" : "forward")}};
  if (cell.mode == "gru") attributes.emplace_back("linear_before_reset", int64_t{1});
  const Names made =
      g.nodes(cell.op,
              {in.x, lifted(in.weight), lifted(reordered(c, c.in("weight"), cell.order)),
               lifted(bias), "", lifted(c.in("hidden")), lifted(c.in("cell"))},
              attributes, lstm ? 3 : 2);
  c.give(0, c.node("Squeeze", {made[0], g.integers({1})}));
  // Only the last cell exists, which stands for those of all steps: reads_last_cell has seen that nothing reads another one.
  if (lstm) c.give(1, c.node("Expand", {made[2], g.shape(c.result_type(1).shape)}));
  if (!lstm) c.give(1, c.node("Expand", {c.number_like(0, "gates"), g.integers({0})}));
}
bool is_plain_recurrent(const OpCall& c) {
  if (c.text("mode") == "lstm" && !reads_last_cell(c)) return false;
  return c.text("mode") != "relu" && !c.has("projection") && !c.has("length") &&
         c.type("gates").shape[2].is_known() && c.type("weight").shape[1].is_known();
}

constexpr OpWriter kWriters[] = {
    {"conv", write_conv, is_plain_window},
    {"conv_input_grad", write_conv_transposed, is_plain_transposed},
    {"max_pool", write_max_pool, is_plain_window},
    {"avg_pool", write_avg_pool, is_plain_mean},
    {"adaptive_avg_pool", write_adaptive<true>, divides_evenly},
    {"adaptive_max_pool", write_adaptive<false>, divides_evenly},
    {"channel_affine", write_channel_affine},
    {"resample_nearest", write_nearest},
    {"resample", write_resample, has_resize},
    {"grid_sample", write_grid_sample, has_grid},
    {"recurrent", write_recurrent, is_plain_recurrent},
};

}  // namespace

std::span<const OpWriter> network_writers() { return kWriters; }

}  // namespace oar::onnx

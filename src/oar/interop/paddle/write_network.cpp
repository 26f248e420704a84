// Products, convolutions, pooling, normalisations, resampling, attention, in PIR's words.
#include <algorithm>

#include "oar/base/format.h"
#include "oar/interop/paddle/writer.h"

namespace oar::paddle {
namespace {

FileId product(const Written& c, FileId x, FileId y, const FileType& type, bool left, bool right) {
  return c.add("matmul", {x, y}, type,
               {flag_of("transpose_x", left), flag_of("transpose_y", right)});
}
void matmul_op(const Written& c) {
  c.give(
      product(c, c.in("x"), c.in("y"), c.result(), c.flag("transpose_x"), c.flag("transpose_y")));
}
void linear_op(const Written& c) {
  FileId made = product(c, c.in("x"), c.in("weight"), c.result(), false, false);
  if (c.has("bias")) made = c.add("add", {made, c.in("bias")}, c.result());
  c.give(made);
}

// ---- windows -------------------------------------------------------------------------------------

// Images of two or three axes; a line is an image of one row.
struct Images {
  explicit Images(const Written& call, std::string_view of)
      : c(call), last(c.flag("channels_last")), line(c.rank(of) == 3), volume(c.rank(of) == 5) {}

  FileId image(FileId x) const {
    if (!line) return x;
    List shape = c.writer.type_of(x).shape;
    shape.insert(shape.begin() + row(), 1);
    return c.add("unsqueeze", {x, FileOperand::constant("axis", {row()})},
                 {c.writer.type_of(x).dtype, shape});
  }
  FileId weight(FileId x) const {
    const List shape = c.writer.type_of(x).shape;
    return line ? c.reshaped(x, {shape[0], shape[1], 1, shape[2]}) : x;
  }
  FileType result() const {
    FileType type = c.result();
    if (line) type.shape.insert(type.shape.begin() + row(), 1);
    return type;
  }
  void give(FileId made) const {
    if (line) made = c.add("squeeze", {made, FileOperand::constant("axis", {row()})}, c.result());
    c.give(made);
  }
  // Numbers for each axis of the image, with that of the row.
  List each(List numbers, int64_t of_row, size_t count = 1) const {
    if (line) numbers.insert(numbers.begin(), count, of_row);
    return numbers;
  }
  std::string layout() const { return volume ? last ? "NDHWC" : "NCDHW" : last ? "NHWC" : "NCHW"; }
  std::string op(std::string_view stem) const { return format("{}{}d", stem, volume ? 3 : 2); }

  const Written& c;
  bool last, line, volume;

 private:
  int64_t row() const { return last ? 1 : 2; }
};
bool is_image(const ProgramCall& c, std::string_view of) {
  return c.rank(of) >= 3 && c.rank(of) <= 5;
}

FileId by_channel(const Written& c, const char* parameter, int64_t axis, int64_t rank) {
  List shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = c.type_in(parameter).shape.at(0);
  return c.reshaped(c.in(parameter), shape);
}

void conv_op(const Written& c) {
  const Images images(c, "x");
  FileId made = c.add(
      images.op("conv"), {images.image(c.in("x")), images.weight(c.in("weight"))}, images.result(),
      {ints_of("strides", images.each(c.list("stride"), 1)),
       ints_of("paddings", images.each(c.list("padding"), 0, 2)),
       text_of("padding_algorithm", "EXPLICIT"),
       ints_of("dilations", images.each(c.list("dilation"), 1)),
       int_of("groups", c.integer("groups")), text_of("data_format", images.layout())});
  if (c.has("bias")) {
    const auto rank = static_cast<int64_t>(images.result().shape.size());
    made = c.add("add", {made, by_channel(c, "bias", images.last ? rank - 1 : 1, rank)},
                 images.result());
  }
  images.give(made);
}
bool is_plain_window(const ProgramCall& c) { return is_image(c, "x") && c.are_known("padding"); }

void conv_transposed(const Written& c) {
  const Images images(c, "grad");
  FileType type = images.result();
  List sizes = images.last ? List(type.shape.begin() + 1, type.shape.end() - 1)
                           : List(type.shape.begin() + 2, type.shape.end());
  const bool open = std::find(sizes.begin(), sizes.end(), -1) != sizes.end();
  if (open) sizes.clear();  // what follows from the padding
  FileAttributes attributes{ints_of("strides", images.each(c.list("stride"), 1)),
                            ints_of("paddings", images.each(c.list("padding"), 0, 2)),
                            ints_of("output_padding", {}),
                            text_of("padding_algorithm", "EXPLICIT"),
                            int_of("groups", c.integer("groups")),
                            ints_of("dilations", images.each(c.list("dilation"), 1)),
                            text_of("data_format", images.layout())};
  std::vector<FileOperand> operands{images.image(c.in("grad")), images.weight(c.in("weight"))};
  if (images.volume)
    attributes.push_back(ints_of("output_size", sizes));
  else
    operands.push_back(FileOperand::constant("output_size", sizes));
  images.give(c.add(images.op("conv") + "_transpose", operands, type, attributes));
}
// Open sizes must be those that the padding alone gives.
bool is_plain_transposed(const ProgramCall& c) {
  if (!is_image(c, "grad") || !c.are_known("padding")) return false;
  const List both = c.list("padding"), stride = c.list("stride"), dilation = c.list("dilation");
  const size_t first = c.flag("channels_last") ? 1 : 2;
  for (size_t i = 0; i < stride.size(); ++i) {
    const Dim from = c.type("grad").shape[first + i], to = c.result_type().shape[first + i];
    const Dim window = (c.type("weight").shape[i + 2] - 1) * dilation[i] + 1;
    const Dim more = to - ((from - 1) * stride[i] + window - both[2 * i] - both[2 * i + 1]);
    if (to.is_symbolic() && more != Dim(0)) return false;
  }
  return true;
}

void pool(const Written& c, const char* size, const List& stride, const List& padding,
          const char* kind, bool ceil, bool exclusive, bool adaptive) {
  const Images images(c, "x");
  const List kernel = images.each(c.list(size), 1);
  FileAttributes attributes;
  std::vector<FileOperand> operands{images.image(c.in("x"))};
  if (images.volume)
    attributes.push_back(ints_of("kernel_size", kernel));
  else
    operands.push_back(FileOperand::constant("kernel_size", kernel));
  const FileAttributes others{ints_of("strides", images.each(stride, 1)),
                              ints_of("paddings", images.each(padding, 0, 2)),
                              flag_of("ceil_mode", ceil),
                              flag_of("exclusive", exclusive),
                              text_of("data_format", images.layout()),
                              text_of("pooling_type", kind),
                              flag_of("global_pooling", false),
                              flag_of("adaptive", adaptive),
                              text_of("padding_algorithm", "EXPLICIT")};
  attributes.insert(attributes.end(), others.begin(), others.end());
  images.give(c.add(images.op("pool"), operands, images.result(), attributes));
}
bool has_no_mask(const ProgramCall& c) {
  return is_plain_window(c) && !c.is_read(c.call.results[1]);
}
void max_pool_op(const Written& c) {
  pool(c, "kernel_size", c.list("stride"), c.list("padding"), "max", c.flag("ceil_mode"), true,
       false);
}
void avg_pool_op(const Written& c) {
  pool(c, "kernel_size", c.list("stride"), c.list("padding"), "avg", c.flag("ceil_mode"),
       c.flag("exclusive"), false);
}
bool is_plain_mean(const ProgramCall& c) { return is_plain_window(c) && !c.given("divisor"); }

void adaptive_avg_op(const Written& c) {
  const size_t axes = c.list("output_size").size();
  pool(c, "output_size", List(axes, 1), List(2 * axes, 0), "avg", false, true, true);
}
bool is_adaptive(const ProgramCall& c) { return is_image(c, "x") && c.are_known("output_size"); }

// Only the op that has places, too, knows these windows.
void adaptive_max_op(const Written& c) {
  const Images images(c, "x");
  const List kernel = images.each(c.list("output_size"), 1);
  const FileType type = images.result();
  const std::vector<FileId> made =
      c.writer.add(images.op("max_pool") + "_with_index", {images.image(c.in("x"))},
                   {type, {DType::Int32, type.shape}},
                   {ints_of("kernel_size", kernel), ints_of("strides", List(kernel.size(), 1)),
                    ints_of("paddings", List(kernel.size(), 0)), flag_of("global_pooling", false),
                    flag_of("adaptive", true), flag_of("ceil_mode", false)});
  images.give(made[0]);
}
bool is_adaptive_max(const ProgramCall& c) {
  return is_adaptive(c) && !c.flag("channels_last") && !c.is_read(c.call.results[1]);
}

// ---- normalisations ------------------------------------------------------------------------------

void affine_op(const Written& c) {
  const int64_t axis = c.axis("channel_axis", "x"), rank = c.rank("x");
  const FileId by = c.add("multiply", {c.in("x"), by_channel(c, "scale", axis, rank)}, c.result());
  c.give(c.add("add", {by, by_channel(c, "shift", axis, rank)}, c.result()));
}

// Only the first result counts.
bool statistics_are_unread(const ProgramCall& c) {
  return !c.is_read(c.call.results[1]) && !c.is_read(c.call.results[2]);
}
void layer_norm_op(const Written& c) {
  const auto row = [&](const char* name) {
    return !c.has(name) || c.rank(name) == 1 ? c.in(name) : c.reshaped(c.in(name), {-1});
  };
  const FileType rows{DType::Float32, c.result(1).shape};
  const std::vector<FileId> made =
      c.writer.add("layer_norm", {c.in("x"), row("weight"), row("bias")}, {c.result(), rows, rows},
                   {float_of("epsilon", c.number("epsilon")),
                    int_of("begin_norm_axis", c.axis("begin_axis", "x"))});
  c.give(made[0]);
}
void group_norm_op(const Written& c) {
  const int64_t groups =
      c.integer("groups") == 0 ? c.type("x").shape[1].value() : c.integer("groups");
  const FileType statistics{DType::Float32, {c.result().shape.at(0), groups}};
  const std::vector<FileId> made = c.writer.add(
      "group_norm", {c.in("x"), c.in("weight"), c.in("bias")}, {c.result(), statistics, statistics},
      {float_of("epsilon", c.number("epsilon")), int_of("groups", groups),
       text_of("data_format", "NCHW")});
  c.give(made[0]);
}
bool knows_groups(const ProgramCall& c) {
  return statistics_are_unread(c) && (c.integer("groups") != 0 || c.type("x").shape[1].is_known());
}

// ---- resampling ----------------------------------------------------------------------------------

struct Mode {
  std::string_view mode;
  const char* op;
  int64_t rank;
};
constexpr Mode kModes[] = {{"nearest", "nearest", 4},  {"nearest", "nearest", 5},
                           {"linear", "linear", 3},    {"linear", "bilinear", 4},
                           {"linear", "trilinear", 5}, {"cubic", "bicubic", 4}};
const Mode* mode_of(const ProgramCall& c, std::string_view mode) {
  for (const Mode& m : kModes)
    if (m.mode == mode && m.rank == c.rank("x")) return &m;
  return nullptr;
}
void interpolate(const Written& c, std::string_view mode, bool align_corners, int64_t align_mode) {
  const Mode& m = *mode_of(c, mode);
  const int64_t axes = m.rank - 2;
  const bool last = c.axis("axis", "x") == 1;
  const std::vector<Dim> sizes = c.sizes("size");
  std::vector<float> scale;
  if (c.given("scale"))
    for (const double s : c.value("scale").as_doubles()) scale.push_back(static_cast<float>(s));
  const bool open = std::any_of(sizes.begin(), sizes.end(), [](Dim d) { return d.is_symbolic(); });
  FileId computed = 0;
  List out{-1, -1, -1};  // depth, height, width
  if (open && scale.empty()) {
    computed = c.cast(c.writer.sizes("size", sizes).ids[0], DType::Int32);
  } else if (!open) {
    for (size_t i = 0; i < sizes.size(); ++i)
      out[3 - static_cast<size_t>(axes) + i] = sizes[i].value();
  }
  const std::string name = m.op;
  c.give(c.add(name + "_interp", {c.in("x"), computed, 0, 0}, c.result(),
               {text_of("data_format", last ? "NHWC" : "NCHW"), int_of("out_d", out[0]),
                int_of("out_h", out[1]), int_of("out_w", out[2]), floats_of("scale", scale),
                text_of("interp_method", name), flag_of("align_corners", align_corners),
                int_of("align_mode", align_mode)}));
}
void nearest_op(const Written& c) { interpolate(c, "nearest", false, 1); }
void resample_op(const Written& c) {
  interpolate(c, c.text("mode"), c.flag("align_corners"), c.integer("align_mode"));
}
bool spans_image(const ProgramCall& c) {
  const int64_t axes = c.rank("x") - 2, first = c.axis("axis", "x");
  return static_cast<int64_t>(c.sizes("size").size()) == axes && (first == 1 || first == 2);
}
bool has_nearest(const ProgramCall& c) { return mode_of(c, "nearest") && spans_image(c); }
bool has_resample(const ProgramCall& c) { return mode_of(c, c.text("mode")) && spans_image(c); }

void unfold_op(const Written& c) {
  FileAttributes attributes;
  for (const char* name : {"kernel_sizes", "strides", "paddings", "dilations"})
    attributes.push_back(ints_of(name, c.list(name)));
  c.give(c.add("unfold", {c.in("x")}, c.result(), attributes));
}
void grid_op(const Written& c) {
  c.give(c.add("grid_sample", {c.in("x"), c.in("grid")}, c.result(),
               {text_of("mode", c.text("mode")), text_of("padding_mode", c.text("padding_mode")),
                flag_of("align_corners", c.flag("align_corners"))}));
}

// ---- attention -----------------------------------------------------------------------------------

// [batch, steps, heads, features] each.
void attention_op(const Written& c) {
  const auto swapped = [&](const char* parameter) {
    return c.transposed(c.in(parameter), {0, 2, 1, 3});
  };
  const FileId query = swapped("query"), key = swapped("key"), value = swapped("value");
  FileType scores = c.writer.type_of(query);
  scores.shape[3] = c.writer.type_of(key).shape[2];
  FileId made = c.scaled(product(c, query, key, scores, false, true), c.number("scale"));
  if (c.has("mask")) made = c.add("add", {made, c.in("mask")}, scores);
  made = c.add("softmax", {made}, scores, {int_of("axis", -1)});
  FileType mixed = c.writer.type_of(query);
  mixed.shape[3] = c.writer.type_of(value).shape[3];
  c.give(c.transposed(product(c, made, value, mixed, false, false), {0, 2, 1, 3}));
}
bool is_plain_attention(const ProgramCall& c) {
  return !c.has("keep") && !c.flag("causal") && !c.is_read(c.call.results[1]) &&
         c.type("query").shape[2] == c.type("key").shape[2];
}

constexpr OpWriter kWriters[] = {
    {"matmul", matmul_op},
    {"linear", linear_op},
    {"conv", conv_op, is_plain_window},
    {"conv_input_grad", conv_transposed, is_plain_transposed},
    {"max_pool", max_pool_op, has_no_mask},
    {"avg_pool", avg_pool_op, is_plain_mean},
    {"adaptive_avg_pool", adaptive_avg_op, is_adaptive},
    {"adaptive_max_pool", adaptive_max_op, is_adaptive_max},
    {"channel_affine", affine_op},
    {"layer_norm_rows", layer_norm_op, statistics_are_unread},
    {"group_norm_rows", group_norm_op, knows_groups},
    {"resample_nearest", nearest_op, has_nearest},
    {"resample", resample_op, has_resample},
    {"im2col", unfold_op},
    {"grid_sample", grid_op},
    {"attention", attention_op, is_plain_attention},
};

}  // namespace

std::span<const OpWriter> network_writers() { return kWriters; }

}  // namespace oar::paddle

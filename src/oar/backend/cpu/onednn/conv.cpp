// Convolutions and their derivatives by oneDNN. Images with the channels last in memory are used as they
// are; others are reordered into the layout it prefers, unless a product of matrices suffices.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "oar/backend/cpu/conv/channels.h"
#include "oar/backend/cpu/conv/conv_tiles.h"
#include "oar/backend/cpu/onednn/dtype.h"
#include "oar/backend/cpu/onednn/epilogue.h"
#include "oar/backend/cpu/onednn/plan.h"
#include "oar/base/parallel.h"
#include "oar/device/device.h"

namespace oar::cpu {
namespace {

using onednn::Desc;
using onednn::Plan;
using onednn::Sizes;

// Multiply-adds below which our own kernels are faster, as their calls cost less.
constexpr double kLeastWork = 1 << 16, kLeastPointwiseWork = 1 << 20;

enum class Pass { Forward, InputGrad, WeightGrad };

// An operand as oneDNN sees it: channels first, whatever the memory's order.
struct Operand {
  Sizes shape, strides;
  DType dtype = DType::Float32;
};

int64_t product_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Strides of [n, c, spatial…] with the channels innermost.
Sizes channels_innermost(const Sizes& shape) {
  Sizes strides(shape.size(), 1);
  int64_t step = shape[1];
  for (size_t i = shape.size() - 1; i >= 2; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  strides[0] = step;
  return strides;
}

Sizes dense(const Sizes& shape) {
  Sizes strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

// A stride of an axis of one element is arbitrary; oneDNN should still recognise the layout.
bool same_places(const Sizes& shape, const Sizes& a, const Sizes& b) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && a[i] != b[i]) return false;
  return true;
}

// True if no two elements share memory, as oneDNN requires.
bool is_disjoint(const oar_tensor& t) {
  SmallVector<std::pair<int64_t, int64_t>, 6> axes;
  for (int i = 0; i < t.ndim; ++i)
    if (t.shape[i] != 1) axes.push_back({t.strides[i], t.shape[i]});
  std::sort(axes.begin(), axes.end());
  int64_t reach = 1;
  for (const auto& [stride, size] : axes) {
    if (stride < reach) return false;
    reach = stride * size;
  }
  return true;
}

void name_layout(Operand& o) {
  for (const Sizes& known : {channels_innermost(o.shape), dense(o.shape)})
    if (same_places(o.shape, o.strides, known)) {
      o.strides = known;
      break;
    }
}

Operand image(const oar_tensor& t) {
  Operand o{Sizes(t.shape, t.shape + t.ndim), Sizes(t.strides, t.strides + t.ndim),
            static_cast<DType>(t.dtype)};
  name_layout(o);
  return o;
}

// [o, c / groups, …] as [groups, o / groups, c / groups, …].
Operand kernel_of(const oar_tensor& t, int64_t groups) {
  Operand o = {Sizes(t.shape, t.shape + t.ndim), Sizes(t.strides, t.strides + t.ndim),
               static_cast<DType>(t.dtype)};
  if (same_places(o.shape, o.strides, dense(o.shape))) o.strides = dense(o.shape);
  if (groups == 1) return o;
  Operand split{
      {groups, o.shape[0] / groups}, {o.shape[0] / groups * o.strides[0], o.strides[0]}, o.dtype};
  split.shape.append(o.shape.begin() + 1, o.shape.end());
  split.strides.append(o.strides.begin() + 1, o.strides.end());
  return split;
}

Desc desc_of(const Operand& o) {
  return onednn::strided(o.shape, onednn::dtype_of(o.dtype), o.strides);
}

// What conv_fused does to each element before it is written.
struct Epilogue {
  bool scales = false, adds = false;
  std::string activation;
  bool is_empty() const { return !scales && !adds && activation.empty(); }
};

// Two operands and a result, in the order of the op; their role in oneDNN depends on the pass.
struct Problem {
  Pass pass;
  Operand first, second, out;
  std::optional<Operand> bias;
  Epilogue epilogue;
  Sizes stride, dilation, before, after;
  int64_t groups;

  const Operand& image_of() const { return pass == Pass::InputGrad ? out : first; }
  const Operand& weight() const {
    return pass == Pass::Forward ? second : pass == Pass::InputGrad ? first : out;
  }
  const Operand& result() const { return pass == Pass::Forward ? out : second; }
  // One of the two is enough: the other is then the image's colours, or comes from outside. With one channel or one
  // pixel both orders are the same, and the other operand decides.
  bool is_channels_last() const {
    const auto lies = [](const Operand& o, const Sizes& strides) {
      return same_places(o.shape, o.strides, strides);
    };
    const auto last = [&](const Operand& o) { return lies(o, channels_innermost(o.shape)); };
    const auto first = [&](const Operand& o) { return lies(o, dense(o.shape)); };
    const Operand &x = image_of(), &y = result();
    if (last(x) && last(y)) return true;
    return (last(x) && !first(x)) || (last(y) && !first(y));
  }
  // One image is then a matrix [channels, pixels], multiplied from the left.
  bool is_pointwise() const {
    const auto plain = [](const Operand& o) {
      return same_places(o.shape, o.strides, dense(o.shape));
    };
    const auto all = [](const Sizes& sizes, int64_t value) {
      return std::all_of(sizes.begin(), sizes.end(), [=](int64_t v) { return v == value; });
    };
    const Operand& w = weight();
    return pass != Pass::WeightGrad && groups == 1 && !bias && epilogue.is_empty() &&
           product_of(w.shape) == w.shape[0] * w.shape[1] && all(stride, 1) && all(before, 0) &&
           all(after, 0) && plain(image_of()) && plain(result()) && plain(w);
  }
  bool is_wide_depthwise() const {
    const Operand& w = weight();
    return groups > 1 && groups == image_of().shape[1] && groups == result().shape[1] &&
           stride.size() == 2 && w.shape.back() > 3;
  }
  int64_t pixels() const { return product_of(result().shape) / result().shape[1]; }
  double work() const {
    const Operand &r = result(), &w = weight();
    return static_cast<double>(product_of(r.shape)) * static_cast<double>(product_of(w.shape)) /
           static_cast<double>(r.shape[1]);
  }
  onednn::PlanKey key(int64_t pieces) const {
    onednn::PlanKey k{'c',
                      static_cast<int64_t>(pass),
                      pieces,
                      groups,
                      bias.has_value(),
                      static_cast<int64_t>(stride.size()),
                      epilogue.scales,
                      epilogue.adds};
    k.push_back(epilogue.activation.empty() ? 0 : onednn::eltwise_of(epilogue.activation)->kind);
    for (const Operand* o : {&first, &second, &out}) {
      k.push_back(static_cast<int64_t>(o->dtype));
      k.append(o->shape.begin(), o->shape.end());
      k.append(o->strides.begin(), o->strides.end());
    }
    for (const Sizes* s : {&stride, &dilation, &before, &after}) k.append(s->begin(), s->end());
    return k;
  }
};

// The convolution in its preferred layouts, and the reorders of operands and result.
struct ConvPlan {
  std::unique_ptr<Plan> main;
  std::unique_ptr<Plan> to_first, to_second, to_bias, from_out;  // null: used as they are
  size_t first_bytes = 0, second_bytes = 0, out_bytes = 0;
};

using onednn::reorder;
std::unique_ptr<Plan> reorder(const_dnnl_memory_desc_t from, const Desc& to) {
  return reorder(onednn::copy_of(from), to.get());
}

void add_epilogue(const Problem& p, onednn::Attributes& to) {
  Sizes channels(p.out.shape.size(), 1);
  channels[1] = p.out.shape[1];
  if (p.epilogue.scales)
    for (dnnl_alg_kind_t kind : {dnnl_binary_mul, dnnl_binary_add})
      to.combine(kind, channels, channels_innermost(channels));
  if (p.epilogue.adds) to.combine(dnnl_binary_add, p.out.shape, channels_innermost(p.out.shape));
  if (const auto e = onednn::eltwise_of(p.epilogue.activation)) to.apply(*e);
}

dnnl_primitive_desc_t describe(const Problem& p, dnnl_data_type_t dtype, const Desc& bias) {
  const auto& lib = onednn::api();
  const bool last = p.is_channels_last();
  onednn::Attributes attributes;
  add_epilogue(p, attributes);
  const auto picture = [&](const Operand& o) {
    return last ? onednn::strided(o.shape, dtype, channels_innermost(o.shape))
                : onednn::any_layout(o.shape, dtype);
  };
  const Desc x = picture(p.image_of()), y = picture(p.result());
  const Desc w = onednn::any_layout(p.weight().shape, dtype);
  // A sum that others are added to is not rounded first.
  const Desc sum = onednn::any_layout(
      p.weight().shape,
      p.pass == Pass::WeightGrad && p.out.dtype == DType::Float32 ? dnnl_f32 : dtype);
  dnnl_primitive_desc_t made = nullptr;
  const auto forward = [&](dnnl_prop_kind_t kind) {
    return lib.dnnl_convolution_forward_primitive_desc_create(
        &made, lib.engine, kind, dnnl_convolution_direct, x.get(), w.get(), bias.get(), y.get(),
        p.stride.data(), p.dilation.data(), p.before.data(), p.after.data(), attributes.get());
  };
  if (p.pass == Pass::Forward)
    return forward(dnnl_forward_inference) == dnnl_success ? made : nullptr;
  if (forward(dnnl_forward_training) != dnnl_success) return nullptr;
  const onednn::PrimitiveDesc hint(std::exchange(made, nullptr));
  const auto create = [&](auto function, auto... no_bias) {
    return function(&made, lib.engine, dnnl_convolution_direct, x.get(), sum.get(), no_bias...,
                    y.get(), p.stride.data(), p.dilation.data(), p.before.data(), p.after.data(),
                    hint.get(), lib.attributes) == dnnl_success
               ? made
               : nullptr;
  };
  return p.pass == Pass::InputGrad
             ? create(lib.dnnl_convolution_backward_data_primitive_desc_create)
             : create(lib.dnnl_convolution_backward_weights_primitive_desc_create,
                      const_dnnl_memory_desc_t{nullptr});
}

// Pointwise: [1, o, c] · [n, c, pixels], or with the weight transposed.
dnnl_primitive_desc_t describe_product(const Problem& p, dnnl_data_type_t dtype) {
  const auto& lib = onednn::api();
  const bool forward = p.pass == Pass::Forward;
  const Operand &from = forward ? p.first : p.second, &w = p.weight();
  const int64_t n = from.shape[0], pixels = p.pixels() / n;
  const int64_t rows = p.out.shape[1], depth = from.shape[1], c = w.shape[1];
  const Desc a = onednn::strided({1, rows, depth}, dtype,
                                 forward ? Sizes{rows * c, c, 1} : Sizes{depth * c, 1, c});
  const Desc b = onednn::strided({n, depth, pixels}, dtype, {depth * pixels, pixels, 1});
  const Desc out = onednn::strided({n, rows, pixels}, dtype, {rows * pixels, pixels, 1});
  dnnl_primitive_desc_t made = nullptr;
  return lib.dnnl_matmul_primitive_desc_create(&made, lib.engine, a.get(), b.get(), nullptr,
                                               out.get(), lib.attributes) == dnnl_success
             ? made
             : nullptr;
}

struct Arguments {
  int first, second, out;
};
Arguments arguments_of(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    case Pass::InputGrad:
      return {DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC};
    default:
      return {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS};
  }
}

std::shared_ptr<const ConvPlan> make_product(const Problem& p) {
  const dnnl_primitive_desc_t desc = describe_product(p, onednn::dtype_of(p.first.dtype));
  if (desc == nullptr) return nullptr;
  const bool forward = p.pass == Pass::Forward;
  ConvPlan plan;
  plan.main = std::make_unique<Plan>(
      onednn::PrimitiveDesc(desc),
      std::initializer_list<int>{forward ? DNNL_ARG_WEIGHTS : DNNL_ARG_SRC,
                                 forward ? DNNL_ARG_SRC : DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
  return plan.main->is_reference() ? nullptr : std::make_shared<const ConvPlan>(std::move(plan));
}

std::shared_ptr<const ConvPlan> make_plan(const Problem& p) {
  if (p.is_pointwise() && onednn::is_fast(p.first.dtype)) return make_product(p);
  // 16-bit floats are widened by the reorders if the machine is slow in them.
  const dnnl_data_type_t dtype =
      onednn::is_fast(p.first.dtype) ? onednn::dtype_of(p.first.dtype) : dnnl_f32;
  const Desc bias = p.bias ? onednn::strided(p.bias->shape, dtype, {1}) : Desc();
  const dnnl_primitive_desc_t desc = describe(p, dtype, bias);
  if (desc == nullptr) return nullptr;
  const Arguments a = arguments_of(p.pass);
  ConvPlan plan;
  SmallVector<int, 8> arguments{a.first, a.second, a.out};
  if (p.bias) arguments.push_back(DNNL_ARG_BIAS);
  for (int i = 0; i < (p.epilogue.scales ? 2 : 0) + (p.epilogue.adds ? 1 : 0); ++i)
    arguments.push_back(onednn::argument_of_step(i));
  plan.main = std::make_unique<Plan>(onednn::PrimitiveDesc(desc), arguments);
  if (plan.main->is_reference()) return nullptr;
  plan.to_first = reorder(desc_of(p.first), plan.main->layout(a.first));
  plan.to_second = reorder(desc_of(p.second), plan.main->layout(a.second));
  plan.from_out = reorder(plan.main->layout(a.out), desc_of(p.out));
  if (p.bias) plan.to_bias = reorder(desc_of(*p.bias), bias.get());
  plan.first_bytes = plan.main->bytes(a.first);
  plan.second_bytes = plan.main->bytes(a.second);
  plan.out_bytes = plan.main->bytes(a.out);
  return std::make_shared<const ConvPlan>(std::move(plan));
}

using Buffer = Scratch<char, 64>;

// 0 pieces: the plan for the whole, which says whether oneDNN can do it.
std::shared_ptr<const ConvPlan> find_plan(const Problem& p) {
  return onednn::plan_for<ConvPlan>(p.key(0), [&] { return make_plan(p); });
}

// ---- Pieces

// The part of a convolution for one thread, and where its operands begin, in elements.
struct Piece {
  std::shared_ptr<const ConvPlan> plan;
  int64_t first = 0, second = 0, out = 0, channel = 0;
};

struct Pieces {
  std::vector<Piece> list;
  bool sums = false;  // the results of the pieces, dense float32, must be added
  // If not null, they are added in oneDNN's layout, `sum_bytes` each, and their sum is reordered once.
  std::unique_ptr<Plan> from_sum;
  size_t sum_bytes = 0;
};

// Sizes of an axis in `parts` parts that differ by one at most.
int64_t begin_of_part(int64_t size, int64_t parts, int64_t i) { return size * i / parts; }

void narrow(Operand& o, size_t axis, int64_t begin, int64_t end, int64_t& offset) {
  offset += begin * o.strides[axis];
  o.shape[axis] = end - begin;
}

void narrow_image(Operand& o, size_t axis, int64_t begin, int64_t end, int64_t& offset) {
  narrow(o, axis, begin, end, offset);
  name_layout(o);
}

// A few images. The gradient of the weight is a sum over images.
Piece some_images(const Problem& whole, int64_t begin, int64_t end) {
  Problem p = whole;
  Piece piece;
  if (p.pass != Pass::InputGrad) narrow_image(p.first, 0, begin, end, piece.first);
  if (p.pass != Pass::Forward) narrow_image(p.second, 0, begin, end, piece.second);
  if (p.pass != Pass::WeightGrad)
    narrow_image(p.out, 0, begin, end, piece.out);
  else
    p.out = {p.out.shape, dense(p.out.shape), DType::Float32};
  piece.plan = find_plan(p);
  return piece;
}

// A few channels of the result, or groups of them: [n, o, …] or [o, c, …] of every tensor with that axis.
Piece some_channels(const Problem& whole, int64_t begin, int64_t end) {
  Problem p = whole;
  Piece piece;
  const bool grouped = p.groups > 1;
  const Operand& weight = whole.weight();
  const int64_t in_group = weight.shape[grouped ? 2 : 1], out_group = weight.shape[grouped ? 1 : 0];
  const int64_t of_image = grouped ? in_group : 1, of_result = grouped ? out_group : 1;
  Operand& w = p.pass == Pass::Forward ? p.second : p.pass == Pass::InputGrad ? p.first : p.out;
  int64_t& w_offset = p.pass == Pass::Forward     ? piece.second
                      : p.pass == Pass::InputGrad ? piece.first
                                                  : piece.out;
  const bool cuts_image = grouped || p.pass == Pass::InputGrad;
  const bool cuts_result = grouped || p.pass != Pass::InputGrad;
  narrow(w, cuts_result || grouped ? 0 : 1, begin, end, w_offset);
  if (cuts_image) {
    const bool is_out = p.pass == Pass::InputGrad;
    narrow_image(is_out ? p.out : p.first, 1, begin * of_image, end * of_image,
                 is_out ? piece.out : piece.first);
  }
  if (cuts_result) {
    const bool is_out = p.pass == Pass::Forward;
    narrow_image(is_out ? p.out : p.second, 1, begin * of_result, end * of_result,
                 is_out ? piece.out : piece.second);
    piece.channel = begin * of_result;
    if (p.bias) p.bias->shape[0] = (end - begin) * of_result;
  }
  if (grouped) p.groups = end - begin;
  piece.plan = find_plan(p);
  return piece;
}

// A few rows (of images; of three spatial axes, planes) of the result of the forward pass, and the rows that they read.
Piece some_rows(const Problem& whole, int64_t begin, int64_t end) {
  Problem p = whole;
  Piece piece;
  const int64_t rows = whole.first.shape[2], step = whole.stride[0];
  const int64_t kernel = whole.second.shape[whole.groups > 1 ? 3 : 2];
  const int64_t reach = (kernel - 1) * (whole.dilation[0] + 1) + 1;
  const int64_t from = begin * step - whole.before[0];
  const int64_t to = (end - 1) * step - whole.before[0] + reach;
  narrow_image(p.first, 2, std::clamp<int64_t>(from, 0, rows), std::clamp<int64_t>(to, 0, rows),
               piece.first);
  if (p.first.shape[2] == 0) return piece;  // only padding
  p.before[0] = std::max<int64_t>(0, -from);
  p.after[0] = std::max<int64_t>(0, to - rows);
  narrow_image(p.out, 2, begin, end, piece.out);
  piece.plan = find_plan(p);
  return piece;
}

using CutPart = Piece (*)(const Problem&, int64_t, int64_t);

// Empty if oneDNN cannot do a part in the same way as the whole.
std::vector<Piece> cut(const Problem& p, int64_t size, int64_t parts, CutPart part) {
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < parts; ++i) {
    pieces.push_back(part(p, begin_of_part(size, parts, i), begin_of_part(size, parts, i + 1)));
    if (pieces.back().plan == nullptr) return {};
  }
  return pieces;
}

constexpr double kLeastWorkOfPiece = 1 << 18;

// Into how many sums over images the gradient of the weight is cut. It does not depend on the number of threads: another
// number of sums gives other last bits.
int64_t sums_of(const Problem& p) {
  constexpr int64_t kMostSums = 8, kMostNumbers = 1 << 22;
  const int64_t sums = std::min({kMostSums, p.image_of().shape[0],
                                 static_cast<int64_t>(p.work() / kLeastWorkOfPiece),
                                 kMostNumbers / product_of(p.weight().shape)});
  return p.pass == Pass::WeightGrad ? std::max<int64_t>(1, sums) : 1;
}

// Sums of pieces that share a layout need one reorder, not one each.
void sum_before_reorder(const Problem& p, Pieces& pieces) {
  const auto layout = [](const Piece& piece) {
    return piece.plan->main->layout(arguments_of(Pass::WeightGrad).out);
  };
  const Piece& first = pieces.list[0];
  const Desc shared = onednn::copy_of(layout(first));
  const bool alike = std::all_of(pieces.list.begin(), pieces.list.end(), [&](const Piece& piece) {
    return onednn::same_layout(shared, layout(piece));
  });
  if (!alike || !first.plan->from_out) return;
  pieces.from_sum = reorder(shared, desc_of(p.out).get());
  pieces.sum_bytes = first.plan->out_bytes;
}

Pieces cut(const Problem& p, int64_t wanted) {
  if (const int64_t sums = sums_of(p); sums > 1) {
    Pieces pieces{cut(p, p.image_of().shape[0], sums, some_images), true, nullptr};
    if (!pieces.list.empty()) {
      sum_before_reorder(p, pieces);
      return pieces;
    }
  }
  wanted =
      std::min(wanted, std::max<int64_t>(1, static_cast<int64_t>(p.work() / kLeastWorkOfPiece)));
  const int64_t images = p.image_of().shape[0];
  Pieces pieces;
  if (wanted == 1) return pieces;
  if (images >= wanted && p.pass != Pass::WeightGrad) {
    pieces.list = cut(p, images, wanted, some_images);
    if (!pieces.list.empty()) return pieces;
  }
  // A fused sum reads whole images, and only the rows of one image are contiguous.
  const bool by_rows = p.pass == Pass::Forward && images == 1 && p.out.shape[2] >= 4 * wanted &&
                       !p.is_pointwise() && p.out.shape.size() > 3;
  if (by_rows) {
    pieces.list = cut(p, p.out.shape[2], wanted, some_rows);
    if (!pieces.list.empty()) return pieces;
  }
  const int64_t channels = p.groups > 1                ? p.groups
                           : p.pass == Pass::InputGrad ? p.out.shape[1]
                                                       : p.weight().shape[0];
  constexpr int64_t kFewestChannels = 16;
  const int64_t parts =
      p.groups > 1 ? std::min(wanted, p.groups) : std::min(wanted, channels / kFewestChannels);
  if (parts > 1 && !(p.epilogue.adds && !p.epilogue.is_empty()))
    pieces.list = cut(p, channels, parts, some_channels);
  return pieces;
}

std::shared_ptr<const Pieces> find_pieces(const Problem& p, int64_t wanted) {
  return onednn::plan_for<Pieces>(p.key(wanted), [&]() -> std::shared_ptr<const Pieces> {
    Pieces pieces = cut(p, wanted);
    if (pieces.list.empty()) pieces.list.push_back({find_plan(p)});
    internal_check(pieces.list[0].plan != nullptr, "a convolution is not accepted");
    return std::make_shared<const Pieces>(std::move(pieces));
  });
}

// The operands' memory, in the order of the op; `more` are the plan's arguments after the bias.
struct Data {
  void *first, *second, *out, *bias = nullptr;
  int64_t bias_count = 0;
  SmallVector<void*, 3> more;
};

// With `stays_packed` the result stays in oneDNN's layout.
void run(const ConvPlan& plan, const Data& of, const void* packed_second, bool stays_packed) {
  const auto room = [](const auto& wanted, size_t bytes) {
    return wanted ? static_cast<int64_t>(bytes) : int64_t{0};
  };
  const Buffer a(room(plan.to_first, plan.first_bytes));
  const Buffer b(packed_second != nullptr ? 0 : room(plan.to_second, plan.second_bytes));
  const bool reorders = plan.from_out && !stays_packed;
  const Buffer c(room(reorders, plan.out_bytes));
  const Buffer d(room(plan.to_bias, static_cast<size_t>(of.bias_count) * sizeof(float)));
  const auto brought = [](const auto& reorder, void* from, const Buffer& to) -> void* {
    if (!reorder) return from;
    reorder->run({from, to.data()});
    return to.data();
  };
  SmallVector<void*, 8> data{brought(plan.to_first, of.first, a),
                             packed_second != nullptr ? const_cast<void*>(packed_second)
                                                      : brought(plan.to_second, of.second, b),
                             reorders ? c.data() : of.out};
  if (of.bias != nullptr) data.push_back(brought(plan.to_bias, of.bias, d));
  data.append(of.more.begin(), of.more.end());
  plan.main->run({data.data(), data.size()});
  if (reorders) plan.from_out->run({c.data(), of.out});
}

// ---- Calls

// An operand whose elements share memory, such as the gradient of a sum, is copied first.
class Spread {
 public:
  explicit Spread(const oar_tensor& t)
      : original_(t), needed_(!is_disjoint(t)), flat_(t, t.data, static_cast<DType>(t.dtype)) {}
  const oar_tensor& layout() const { return needed_ ? flat_.get() : original_; }
  // Elements in the layout `layout`; `buffer` has room for `bytes`.
  int64_t bytes() const {
    return needed_ ? original_.numel * static_cast<int64_t>(size_of(dtype())) : 0;
  }
  void* fill(void* buffer) const {
    if (!needed_) return original_.data;
    const FlatTensor to(original_, buffer, dtype());
    copy_elements(to.get(), original_);
    return buffer;
  }

 private:
  DType dtype() const { return static_cast<DType>(original_.dtype); }
  const oar_tensor& original_;
  bool needed_;
  FlatTensor flat_;
};

// Of conv_fused: the operands after the bias.
enum : int { kScale = 3, kShift = 4, kResidual = 5, kActivation = 11 };
constexpr int kFusedOperands = 3;

Problem problem_of(const KernelCall& call, Pass pass, bool fused) {
  const int at = fused ? 3 + kFusedOperands : 3;
  const bool last = call.arg(at + 4).as_bool();
  const Ints stride = call.arg(at).as_ints(), padding = call.arg(at + 1).as_ints();
  const Ints dilation = call.arg(at + 2).as_ints();
  Problem p;
  p.pass = pass;
  p.groups = call.arg(at + 3).as_int();
  if (fused)
    p.epilogue = {call.has(kScale), call.has(kResidual),
                  std::string(call.arg(kActivation).as_string())};
  const auto picture = [&](const oar_tensor& t) {
    return image(ChannelsFirst(Spread(t).layout(), last).get());
  };
  const auto kernel = [&](const oar_tensor& t) { return kernel_of(Spread(t).layout(), p.groups); };
  p.first = pass == Pass::InputGrad ? kernel(call.in(0)) : picture(call.in(0));
  p.second = pass == Pass::Forward ? kernel(call.in(1)) : picture(call.in(1));
  p.out = pass == Pass::WeightGrad ? kernel(call.out()) : picture(call.out());
  if (pass == Pass::Forward && call.has(2))
    p.bias =
        Operand{{call.in(2).numel}, {call.in(2).strides[0]}, static_cast<DType>(call.in(2).dtype)};
  for (size_t i = 0; i < stride.size(); ++i) {
    p.stride.push_back(stride[i]);
    p.dilation.push_back(dilation[i] - 1);
    p.before.push_back(padding[2 * i]);
    p.after.push_back(padding[2 * i + 1]);
  }
  return p;
}

const char* objection_to_shape(const Problem& p) {
  if (p.is_pointwise() && p.work() < kLeastPointwiseWork) return "the product is small";
  if (p.pixels() < 16) return "so few pixels are bound by the weight's memory";
  if (p.pass == Pass::InputGrad && p.groups == 1 && p.out.shape[1] < 8)
    return "so few channels fill no vector";
  if (p.bias && p.bias->strides[0] < 1) return "the bias is broadcast";
  if (p.pass == Pass::WeightGrad && p.is_wide_depthwise() && p.is_channels_last())
    return "the sums of a wide depthwise kernel fit our registers";
  return nullptr;
}

// A depthwise kernel needs no blocks of channels: creating them takes longer than the sums.
bool adds_rows(const Problem& p, DType dtype) {
  const Sizes &image = p.image_of().shape, &result = p.result().shape;
  return p.pass != Pass::WeightGrad && !p.is_channels_last() && dtype == DType::Float32 &&
         p.groups > 1 && image[1] == p.groups && result[1] == p.groups &&
         std::all_of(p.stride.begin(), p.stride.end(), [](int64_t step) { return step == 1; }) &&
         std::min(image.back(), result.back()) >= 16;
}

template <Pass kPass>
const char* refused_by_tiles(const oar_kernel_call* call) {
  if constexpr (kPass == Pass::Forward) return tiles_refuse_conv(call);
  if constexpr (kPass == Pass::InputGrad) return tiles_refuse_conv_input_grad(call);
  if constexpr (kPass == Pass::WeightGrad) return tiles_refuse_conv_weight_grad(call);
}

// Numbers per channel are dense, and the residual has the layout of the result: channels last.
const char* objection_to_epilogue(const KernelCall& call, const Problem& p) {
  if (call.dtype() != DType::Float32) return "epilogues are for float32";
  if (!p.epilogue.activation.empty() && !onednn::eltwise_of(p.epilogue.activation))
    return "oneDNN does not have the activation";
  for (int i : {static_cast<int>(kScale), static_cast<int>(kShift)})
    if (call.has(i) && (call.dtype(i) != DType::Float32 || !is_contiguous(call.in(i))))
      return "the channels' numbers are not dense float32";
  if (!call.has(kResidual)) return nullptr;
  const bool last = call.arg(kFusedOperands + 7).as_bool();
  const Operand added = image(ChannelsFirst(call.in(kResidual), last).get());
  const auto is_last = [](const Operand& o) {
    return same_places(o.shape, o.strides, channels_innermost(o.shape));
  };
  return is_last(added) && is_last(p.out) ? nullptr : "the residual has another layout";
}

template <Pass kPass, bool kFused = false>
const char* objection(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  if (onednn::dtype_of(call.dtype()) == dnnl_data_type_undef) return "not a dtype of oneDNN's";
  if (call.out().numel == 0 || call.in(0).numel == 0 || call.in(1).numel == 0)
    return "there is nothing to do";
  const Problem p = problem_of(call, kPass, kFused);
  if constexpr (kFused)
    if (const char* epilogue = objection_to_epilogue(call, p)) return epilogue;
  if (p.work() < kLeastWork) return "the convolution is small";
  if (!kFused && adds_rows(p, call.dtype())) return "rows are added directly";
  if (onednn::library() == nullptr) return "oneDNN is not there";
  if (!onednn::is_fast(call.dtype()) && refused_by_tiles<kPass>(raw) == nullptr)
    return "tiles are faster";
  if (const char* shape = objection_to_shape(p)) return shape;
  return find_plan(p) ? nullptr : "oneDNN has no kernel for this convolution";
}

char* moved(void* data, int64_t elements, DType dtype) {
  return static_cast<char*>(data) + elements * static_cast<int64_t>(size_of(dtype));
}

// The weight as each piece's plan wants it; null: as it is.
using Weights = std::vector<std::shared_ptr<Buffer>>;

Weights packed_weights(const std::vector<Piece>& pieces, void* weight, DType dtype) {
  Weights weights;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const auto alike = std::find_if(
        pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(i), [&](const Piece& other) {
          return other.plan == piece.plan && other.second == piece.second;
        });
    const auto place = static_cast<size_t>(alike - pieces.begin());
    std::shared_ptr<Buffer> room = place < i ? weights[place] : nullptr;
    if (!room && piece.plan->to_second) {
      room = std::make_shared<Buffer>(static_cast<int64_t>(piece.plan->second_bytes));
      piece.plan->to_second->run({moved(weight, piece.second, dtype), room->data()});
    }
    weights.push_back(std::move(room));
  }
  return weights;
}

// What calls like one need besides their data. How they are cut depends on the number of threads, so that comes with the
// first of them.
class CallPlan {
 public:
  explicit CallPlan(Problem problem) : problem_(std::move(problem)) {}

  struct Ready {
    int64_t wanted = 0;
    std::shared_ptr<const Pieces> pieces;
    Weights weights;  // by piece; empty: they are brought into their layout in each call
  };
  // The weight, which `second` is, is kept in its layout while it does not change.
  std::shared_ptr<const Ready> ready(void* second, DType dtype, bool unchanged) {
    const int64_t wanted = onednn::wanted_pieces();
    std::shared_ptr<const Ready> now = latest_.get();
    if (!now || now->wanted != wanted)
      now = latest_.set({wanted, find_pieces(problem_, wanted), {}});
    if (unchanged != now->weights.empty()) return now;
    return latest_.set({wanted, now->pieces,
                        unchanged ? packed_weights(now->pieces->list, second, dtype) : Weights()});
  }

 private:
  const Problem problem_;
  onednn::Latest<Ready> latest_;
};

template <Pass kPass, bool kFused>
std::unique_ptr<CallPlan> prepare(const KernelCall& call) {
  return std::make_unique<CallPlan>(problem_of(call, kPass, kFused));
}

// The sum of the results of the pieces, which lie one after another, `each` numbers apart.
void add_up(const Pieces& pieces, float* parts, int64_t each, const oar_tensor& out) {
  const auto count = static_cast<int64_t>(pieces.list.size());
  const bool direct =
      !pieces.from_sum && static_cast<DType>(out.dtype) == DType::Float32 && is_contiguous(out);
  float* const total = direct ? static_cast<float*>(out.data) : parts;
  parallel_for(0, each, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float value = parts[i];
      for (int64_t k = 1; k < count; ++k) value += parts[k * each + i];
      total[i] = value;
    }
  });
  if (direct) return;
  if (pieces.from_sum) return pieces.from_sum->run({total, out.data});
  const FlatTensor from(out, total, DType::Float32);
  copy_elements(out, from.get());
}

template <Pass kPass, bool kFused>
void convolve(KernelCall& call) {
  constexpr int kWeight = 1;
  const Spread first(call.in(0)), second(call.in(1));
  const Buffer first_room(first.bytes()), second_room(second.bytes());
  Data whole{first.fill(first_room.data()), second.fill(second_room.data()), call.out().data};
  const DType dtype = call.dtype();
  const std::shared_ptr<const CallPlan::Ready> ready = call.plan_as<CallPlan>().ready(
      whole.second, dtype, kPass == Pass::Forward && call.is_unchanged(kWeight));
  const Weights& packed = ready->weights;
  const Pieces& pieces = *ready->pieces;
  const auto count = static_cast<int64_t>(pieces.list.size());
  const int64_t each = !pieces.sums      ? 0
                       : pieces.from_sum ? static_cast<int64_t>(pieces.sum_bytes / sizeof(float))
                                         : call.out().numel;
  const Scratch<float, 64> parts(each * count);
  parallel_chunks(count, [&](int64_t i) {
    const Piece& piece = pieces.list[static_cast<size_t>(i)];
    Data data{moved(whole.first, piece.first, dtype), moved(whole.second, piece.second, dtype),
              pieces.sums ? static_cast<void*>(parts.data() + i * each)
                          : moved(whole.out, piece.out, dtype)};
    if (kPass == Pass::Forward && call.has(2)) {
      data.bias = moved(call.in(2).data, piece.channel * call.in(2).strides[0], call.dtype(2));
      data.bias_count = call.in(2).numel;
    }
    if constexpr (kFused) {
      for (int k : {static_cast<int>(kScale), static_cast<int>(kShift)})
        if (call.has(k)) data.more.push_back(moved(call.in(k).data, piece.channel, call.dtype(k)));
      if (call.has(kResidual))
        data.more.push_back(moved(call.in(kResidual).data, piece.out, dtype));
    }
    const std::shared_ptr<Buffer>* room =
        packed.empty() ? nullptr : &packed[static_cast<size_t>(i)];
    run(*piece.plan, data, room && *room ? (*room)->data() : nullptr, pieces.from_sum != nullptr);
  });
  if (pieces.sums) add_up(pieces, parts.data(), each, call.out());
}

template <Pass kPass, bool kFused = false>
oar_kernel convolution(const char* op) {
  return {op,
          1,
          "cpu:onednn",
          objection<kPass, kFused>,
          kPass == Pass::WeightGrad ? training_entry<convolve<kPass, kFused>>
                                    : kernel_entry<convolve<kPass, kFused>>,
          nullptr,
          prepare_entry<prepare<kPass, kFused>>,
          destroy_entry<CallPlan>};
}

}  // namespace

KernelList onednn_conv_kernels() {
  static const oar_kernel list[] = {
      convolution<Pass::Forward>("conv"),
      convolution<Pass::Forward, true>("conv_fused"),
      convolution<Pass::InputGrad>("conv_input_grad"),
      convolution<Pass::WeightGrad>("conv_weight_grad"),
  };
  return list;
}

}  // namespace oar::cpu

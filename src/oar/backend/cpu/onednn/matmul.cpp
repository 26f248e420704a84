// Matrix products by oneDNN, with their epilogues.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "oar/backend/cpu/gemm/batched.h"
#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/backend/cpu/onednn/dtype.h"
#include "oar/backend/cpu/onednn/epilogue.h"
#include "oar/backend/cpu/onednn/plan.h"
#include "oar/base/parallel.h"
#include "oar/device/device.h"

namespace oar::cpu {
namespace {

using onednn::Desc;
using onednn::Plan;

// Multiply-adds below which our own product is faster, as its call costs less: of any product, of one
// whose shape suits ours, and of each in a batch.
constexpr double kLeastWork = 1 << 17, kLeastSquareWork = 1 << 20, kLeastWorkOfEach = 1 << 11;

// Ours is made for squares: it wastes lanes on few columns, and cuts neither few rows nor a long sum
// into enough pieces. Few rows against dense rows of y, on the other hand, are bound by memory.
const char* objection_to_shape(const Batched& p) {
  const double each =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (p.m == 1 || p.n == 1) return "a product with a vector is bound by memory";
  if (p.m <= 8 && p.b_column == 1 && p.n >= 32) return "so few rows are bound by memory";
  if (each < kLeastWorkOfEach) return "the matrices are small";
  if (p.k == 1) return "a product of two vectors is bound by memory";
  const bool square = p.m >= 48 && p.n > 8 && p.k < 16 * std::max(p.m, p.n);
  return square && each * static_cast<double>(p.count) < kLeastSquareWork ? "the product is small"
                                                                          : nullptr;
}

// oneDNN handles the innermost batch axis; the others are a loop around it.
struct Core {
  int64_t count = 1, a = 0, b = 0, c = 0;
};

Batched without_core(Batched p, Core& core) {
  if (p.axes.empty()) return p;
  const Batched::Axis last = p.axes.back();
  core = {last.size, last.a, last.b, last.c};
  p.count /= last.size;
  p.axes.pop_back();
  return p;
}

// Neighbouring batch axes that continue each other in all three operands are one.
void join_axes(Batched& p) {
  size_t kept = 0;
  for (size_t i = 0; i < p.axes.size(); ++i) {
    const Batched::Axis axis = p.axes[i];
    if (kept > 0) {
      Batched::Axis& outer = p.axes[kept - 1];
      if (outer.a == axis.a * axis.size && outer.b == axis.b * axis.size &&
          outer.c == axis.c * axis.size) {
        outer = {outer.size * axis.size, axis.a, axis.b, axis.c};
        continue;
      }
    }
    p.axes[kept++] = axis;
  }
  p.axes.resize(kept);
}

// Of a matrix that oneDNN reads without a copy: one axis is dense, the other does not overlap.
bool is_plain(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return (column == 1 && (row >= columns || rows == 1)) ||
         (row == 1 && (column >= rows || columns == 1));
}

// One of the ops that are products, in terms of the most general.
struct Product {
  bool transpose_x = false, transpose_y = false;
  const oar_tensor *bias = nullptr, *residual = nullptr;
  float scale = 1;
  std::string_view activation;
  const char* objection = nullptr;  // to operands that are no such product

  bool has_epilogue() const { return residual != nullptr || scale != 1 || !activation.empty(); }
};

Batched call_shape(const KernelCall& call, const Product& of) {
  Batched p = batched_product(call.in(0), call.in(1), call.out(), of.transpose_x, of.transpose_y);
  join_axes(p);
  return p;
}

Desc matrices(int64_t count, int64_t stride, int64_t rows, int64_t columns, int64_t row,
              int64_t column, dnnl_data_type_t dtype) {
  // A stride of an axis of one element is arbitrary; oneDNN needs one that fits a known layout.
  if (rows == 1 && column == 1) row = columns;
  if (columns == 1 && row == 1) column = rows;
  if (count == 1 || stride == 0) stride = column == 1 ? rows * row : columns * column;
  return onednn::strided({count, rows, columns}, dtype, {stride, row, column});
}

// A product that oneDNN does in one call, without its data.
struct Problem {
  Batched p;
  Core core;
  DType dtype = DType::Float32;
  bool biased = false, adds = false;
  float scale = 1;
  std::optional<onednn::Eltwise> activation;
  bool packs = false;  // the right factor is in the layout that oneDNN prefers

  Desc left() const {
    return matrices(core.a == 0 ? 1 : core.count, core.a, p.m, p.k, p.a_row, p.a_column, type());
  }
  Desc right() const {
    return matrices(core.b == 0 ? 1 : core.count, core.b, p.k, p.n, p.b_row, p.b_column, type());
  }
  Desc result() const { return matrices(core.count, core.c, p.m, p.n, p.c_row, 1, type()); }
  dnnl_data_type_t type() const { return onednn::dtype_of(dtype); }

  onednn::PlanKey key() const {
    return {'m',
            static_cast<int64_t>(dtype),
            biased,
            adds,
            std::bit_cast<int32_t>(scale),
            activation ? activation->kind : 0,
            packs,
            p.m,
            p.n,
            p.k,
            p.a_row,
            p.a_column,
            p.b_row,
            p.b_column,
            p.c_row,
            core.count,
            core.a,
            core.b,
            core.c};
  }
};

std::shared_ptr<const Plan> make_plan(const Problem& of) {
  const auto& lib = onednn::api();
  const Batched& p = of.p;
  const Desc a = of.left(), c = of.result();
  const Desc b = of.packs ? onednn::any_layout({1, p.k, p.n}, of.type()) : of.right();
  const Desc bias = of.biased ? onednn::strided({1, 1, p.n}, of.type(), {p.n, p.n, 1}) : Desc();
  SmallVector<int, 5> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  if (of.biased) arguments.push_back(DNNL_ARG_BIAS);
  onednn::Attributes attributes;
  if (of.scale != 1) attributes.apply({dnnl_eltwise_linear, of.scale, 0});
  if (of.adds) {
    const int64_t row = of.core.count == 1 ? p.m * p.c_row : of.core.c;
    attributes.combine(dnnl_binary_add, {of.core.count, p.m, p.n}, {row, p.c_row, 1});
    arguments.push_back(onednn::argument_of_step(of.scale != 1 ? 1 : 0));
  }
  if (of.activation) attributes.apply(*of.activation);
  dnnl_primitive_desc_t desc = nullptr;
  if (lib.dnnl_matmul_primitive_desc_create(&desc, lib.engine, a.get(), b.get(), bias.get(),
                                            c.get(), attributes.get()) != dnnl_success)
    return nullptr;
  auto plan = std::make_shared<const Plan>(onednn::PrimitiveDesc(desc), arguments);
  return plan->is_reference() ? nullptr : plan;
}

std::shared_ptr<const Plan> find_plan(const Problem& of) {
  return onednn::plan_for<Plan>(of.key(), [&] { return make_plan(of); });
}

// The rows of a bias and a residual are read as oneDNN writes the result: dense.
const char* objection_to_epilogue(const KernelCall& call, const Product& of) {
  if (of.bias != nullptr && (of.bias->numel != call.out().shape[call.out().ndim - 1] ||
                             of.bias->strides[of.bias->ndim - 1] != 1))
    return "the bias is not a dense row";
  if (!of.has_epilogue()) return nullptr;
  if (call.dtype() != DType::Float32) return "epilogues are for float32";
  if (!of.activation.empty() && !onednn::eltwise_of(of.activation))
    return "oneDNN does not have the activation";
  return of.residual == nullptr || is_contiguous(*of.residual) ? nullptr
                                                               : "the residual is not dense";
}

Problem problem_of(const KernelCall& call, const Product& of) {
  Problem problem;
  problem.p = without_core(call_shape(call, of), problem.core);
  problem.dtype = call.dtype();
  problem.biased = of.bias != nullptr;
  problem.adds = of.residual != nullptr;
  problem.scale = of.scale;
  problem.activation = onednn::eltwise_of(of.activation);
  return problem;
}

const char* objection(const oar_kernel_call* raw, const Product& of) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  const oar_tensor& x = call.in(0);
  const double k = of.transpose_x && x.ndim > 1 ? x.shape[x.ndim - 2] : x.shape[x.ndim - 1];
  const double work = static_cast<double>(call.out().numel) * k;
  if (!(work >= kLeastWork)) return "the product is small";
  const onednn::Library* lib = onednn::library();
  if (lib == nullptr) return "oneDNN is not there";
  if (!onednn::is_fast(call.dtype())) return "our own product is as fast in this dtype";
  if (const char* epilogue = objection_to_epilogue(call, of)) return epilogue;
  const Batched p = call_shape(call, of);
  if (const char* shape = objection_to_shape(p)) return shape;
  if (!is_plain(p.m, p.k, p.a_row, p.a_column) || !is_plain(p.k, p.n, p.b_row, p.b_column))
    return "an operand has no dense axis";
  return find_plan(problem_of(call, of)) ? nullptr : "oneDNN has no kernel for this layout";
}

// ---- Pieces

// The part of a product for one thread, and where its operands begin, in elements.
struct Piece {
  Problem problem;
  std::shared_ptr<const Plan> plan;
  int64_t a = 0, b = 0, c = 0, bias = 0;
};
using Pieces = std::vector<Piece>;

struct Grid {
  int64_t rows = 1, columns = 1;
};

// Cuts a matrix into about as many parts as requested, none of them slim: such parts read the least.
Grid grid_of(const Problem& whole, int64_t wanted) {
  constexpr int64_t kLeastRows = 4, kLeastColumns = 16;
  const Batched& p = whole.p;
  Grid best;
  double least = 0;
  for (int64_t rows = 1; rows <= wanted; ++rows) {
    // The residual is read by whole rows.
    const int64_t columns = whole.adds ? 1 : wanted / rows;
    if ((rows > 1 && p.m / rows < kLeastRows) || (columns > 1 && p.n / columns < kLeastColumns))
      continue;
    const double reads = static_cast<double>(p.m) / static_cast<double>(rows) +
                         static_cast<double>(p.n) / static_cast<double>(columns);
    const double cost = reads / static_cast<double>(rows * columns);
    if (least != 0 && cost >= least) continue;
    least = cost;
    best = {rows, columns};
  }
  return best;
}

// Into how many parts a thread cuts that many columns. oneDNN reads a large right factor where it is, in lines that are far apart.
// A part of it fits into the cache; if columns are dense, all that matters is that parts are not too wide.
int64_t parts_of_columns(const Problem& whole, int64_t columns) {
  constexpr int64_t kLeastBytes = 6 << 20, kLeastColumns = 256, kMostColumns = 1536;
  const int64_t bytes = whole.p.k * columns * static_cast<int64_t>(size_of(whole.dtype));
  if (whole.dtype != DType::Float32 || whole.adds || whole.core.count > 1 ||
      columns < kLeastColumns || bytes < kLeastBytes)
    return 1;
  const int64_t least = whole.p.b_column == 1 ? 2 : 1;
  return std::max(least, (columns + kMostColumns - 1) / kMostColumns);
}

// The length of each of so many parts; the last may be shorter, the others end at multiples of `unit`.
int64_t part_of(int64_t size, int64_t parts, int64_t unit) {
  const int64_t each = (size + parts - 1) / parts;
  return std::min(size, (each + unit - 1) / unit * unit);
}

Piece piece_of(const Problem& whole, Problem part, int64_t row, int64_t column, int64_t batch) {
  const Batched& p = whole.p;
  std::shared_ptr<const Plan> plan = find_plan(part);
  return {std::move(part),
          std::move(plan),
          row * p.a_row + batch * whole.core.a,
          column * p.b_column + batch * whole.core.b,
          row * p.c_row + column + batch * whole.core.c,
          column};
}

// Empty if oneDNN cannot do a part in the same way as the whole.
Pieces cut(const Problem& whole, int64_t wanted) {
  constexpr double kLeastWorkOfPiece = 1 << 18;
  const Batched& p = whole.p;
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) *
                      static_cast<double>(p.k) * static_cast<double>(whole.core.count);
  wanted = std::min((wanted + p.count - 1) / p.count,
                    std::max<int64_t>(1, static_cast<int64_t>(work / kLeastWorkOfPiece)));
  Pieces pieces;
  if (whole.core.count > 1 && whole.core.count >= wanted) {
    const int64_t step = part_of(whole.core.count, wanted, 1);
    for (int64_t at = 0; at < whole.core.count; at += step) {
      Problem part = whole;
      part.core.count = std::min(step, whole.core.count - at);
      pieces.push_back(piece_of(whole, std::move(part), 0, 0, at));
    }
  } else {
    const Grid grid = grid_of(whole, wanted);
    const int64_t rows = part_of(p.m, grid.rows, 8);
    const int64_t whole_columns = part_of(p.n, grid.columns, 16);
    const int64_t columns = part_of(whole_columns, parts_of_columns(whole, whole_columns), 16);
    for (int64_t row = 0; row < p.m; row += rows)
      for (int64_t column = 0; column < p.n; column += columns) {
        Problem part = whole;
        part.p.m = std::min(rows, p.m - row);
        part.p.n = std::min(columns, p.n - column);
        pieces.push_back(piece_of(whole, std::move(part), row, column, 0));
      }
  }
  const bool all = std::all_of(pieces.begin(), pieces.end(),
                               [](const Piece& piece) { return piece.plan != nullptr; });
  return all ? pieces : Pieces();
}

std::shared_ptr<const Pieces> find_pieces(const Problem& of, int64_t wanted) {
  onednn::PlanKey key = of.key();
  key.push_back(wanted);
  key.push_back(of.p.count);
  return onednn::plan_for<Pieces>(key, [&]() -> std::shared_ptr<const Pieces> {
    Pieces pieces = cut(of, wanted);
    if (pieces.empty()) pieces.push_back(piece_of(of, of, 0, 0, 0));
    internal_check(pieces[0].plan != nullptr, "a product is not accepted");
    return std::make_shared<const Pieces>(std::move(pieces));
  });
}

// What calls like one need besides their data. How they are cut depends on the number of threads, so that comes with the
// first of them.
class ProductPlan {
 public:
  ProductPlan(const KernelCall& call, const Product& of) : problem(problem_of(call, of)) {}

  const Problem problem;

  // Part of the right factor in the layout that a piece's plan prefers.
  struct Packed {
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<Scratch<char, 64>> right;
  };
  struct Ready {
    int64_t wanted = 0;
    std::shared_ptr<const Pieces> pieces;
    std::vector<Packed> packed;  // by piece; empty: the right factor is read as it is
    bool has_best_layout = false;
  };

  // The right factor is packed while it does not change.
  std::shared_ptr<const Ready> ready(const oar_tensor& right, bool unchanged) {
    const int64_t wanted = onednn::wanted_pieces();
    std::shared_ptr<const Ready> now = latest_.get();
    if (!now || now->wanted != wanted)
      now = latest_.set({wanted, find_pieces(problem, wanted), {}, false});
    if (unchanged ? now->has_best_layout || !now->packed.empty() : now->packed.empty()) return now;
    Ready next{wanted, now->pieces, {}, false};
    if (unchanged) pack(next, right);
    return latest_.set(std::move(next));
  }

 private:
  // The plans that want the right factor in another layout than it has; empty where one does not.
  std::vector<std::shared_ptr<const Plan>> packing_plans(const Pieces& pieces) const {
    std::vector<std::shared_ptr<const Plan>> plans;
    if (problem.p.count != 1 || (problem.core.count != 1 && problem.core.b != 0)) return plans;
    for (const Piece& piece : pieces) {
      Problem packed = piece.problem;
      packed.packs = true;
      plans.push_back(find_plan(packed));
      if (!plans.back() ||
          onednn::same_layout(packed.right(), plans.back()->layout(DNNL_ARG_WEIGHTS)))
        return {};
    }
    return plans;
  }

  void pack(Ready& to, const oar_tensor& right) const {
    const std::vector<std::shared_ptr<const Plan>> plans = packing_plans(*to.pieces);
    to.has_best_layout = plans.empty();
    for (size_t i = 0; i < plans.size(); ++i) to.packed.push_back(pack(to, plans, i, right));
  }

  // Rows that differ read the same columns.
  Packed pack(const Ready& of, const std::vector<std::shared_ptr<const Plan>>& plans, size_t i,
              const oar_tensor& right) const {
    const Pieces& pieces = *of.pieces;
    for (size_t k = 0; k < i; ++k)
      if (plans[k] == plans[i] && pieces[k].b == pieces[i].b) return of.packed[k];
    const onednn::OneThread one;
    auto room = std::make_shared<Scratch<char, 64>>(
        static_cast<int64_t>(plans[i]->bytes(DNNL_ARG_WEIGHTS)));
    auto* const from =
        static_cast<char*>(right.data) + pieces[i].b * static_cast<int64_t>(size_of(problem.dtype));
    onednn::reorder(pieces[i].problem.right(), plans[i]->layout(DNNL_ARG_WEIGHTS))
        ->run({from, room->data()});
    return {plans[i], std::move(room)};
  }

  onednn::Latest<Ready> latest_;
};

void run(const KernelCall& call, const Product& of, const Problem& problem,
         const ProductPlan::Ready& ready) {
  const Pieces& pieces = *ready.pieces;
  const std::vector<ProductPlan::Packed>& packed = ready.packed;
  const auto size = static_cast<int64_t>(size_of(call.dtype()));
  const auto place = [size](const oar_tensor& t, int64_t offset) {
    return static_cast<void*>(static_cast<char*>(t.data) + offset * size);
  };
  const auto count = static_cast<int64_t>(pieces.size());
  parallel_chunks(problem.p.count * count, [&](int64_t i) {
    const auto number = static_cast<size_t>(i % count);
    const Piece& piece = pieces[number];
    const Batched::Offsets at = problem.p.at(i / count);
    SmallVector<void*, 5> data{
        place(call.in(0), at.a + piece.a),
        packed.empty() ? place(call.in(1), at.b + piece.b) : packed[number].right->data(),
        place(call.out(), at.c + piece.c)};
    if (of.bias != nullptr) data.push_back(place(*of.bias, piece.bias));
    if (of.residual != nullptr) data.push_back(place(*of.residual, at.c + piece.c));
    const Plan& plan = packed.empty() ? *piece.plan : *packed[number].plan;
    plan.run({data.data(), data.size()});
  });
}

template <Product (*kRead)(const KernelCall&)>
std::unique_ptr<ProductPlan> prepare(const KernelCall& call) {
  return std::make_unique<ProductPlan>(call, kRead(call));
}
template <Product (*kRead)(const KernelCall&)>
void product(KernelCall& call) {
  constexpr int kRight = 1;
  auto& plan = call.plan_as<ProductPlan>();
  run(call, kRead(call), plan.problem, *plan.ready(call.in(kRight), call.is_unchanged(kRight)));
}
template <Product (*kRead)(const KernelCall&)>
const char* accepts(const oar_kernel_call* raw) {
  const Product of = kRead(*static_cast<const KernelCall*>(raw));
  return of.objection ? of.objection : objection(raw, of);
}

const oar_tensor* optional(const KernelCall& call, int i) {
  return call.has(i) ? &call.in(i) : nullptr;
}
Product matmul(const KernelCall& call) {
  return {.transpose_x = call.arg(2).as_bool(), .transpose_y = call.arg(3).as_bool()};
}
Product matmul_core(const KernelCall&) { return {}; }
Product linear(const KernelCall& call) {
  const oar_tensor* bias = optional(call, 2);
  return {.bias = bias, .objection = objection_to_linear(call.in(1), bias)};
}
Product matmul_fused(const KernelCall& call) {
  return {.transpose_x = call.arg(4).as_bool(),
          .transpose_y = call.arg(5).as_bool(),
          .bias = optional(call, 2),
          .residual = optional(call, 3),
          .scale = static_cast<float>(call.arg(6).as_double()),
          .activation = call.arg(7).as_string()};
}

template <Product (*kRead)(const KernelCall&)>
oar_kernel kernel_of(const char* op) {
  return {op,
          1,
          "cpu:onednn",
          accepts<kRead>,
          kernel_entry<product<kRead>>,
          nullptr,
          prepare_entry<prepare<kRead>>,
          destroy_entry<ProductPlan>};
}

}  // namespace

KernelList onednn_matmul_kernels() {
  static const oar_kernel list[] = {
      kernel_of<matmul>("matmul"),
      kernel_of<matmul_core>("matmul_core"),
      kernel_of<linear>("linear"),
      kernel_of<matmul_fused>("matmul_fused"),
  };
  return list;
}

}  // namespace oar::cpu

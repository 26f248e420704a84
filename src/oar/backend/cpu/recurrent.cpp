// Recurrent cells over whole sequences. A step is one product of the states with weights that were
// packed once, and one pass over the gates; the derivative computes its weight gradients at the end,
// in one product over all steps. 16-bit floats compute in float32.
#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/gemm/pack.h"
#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/rows/row_table.h"

namespace oar::cpu {
namespace {

// A matrix that many others are multiplied with: in panels that gemm reads as they are.
template <class C>
class PackedWeights {
 public:
  PackedWeights(int64_t rows, int64_t columns, Matrix<const C> from)
      : rows_(rows), columns_(columns), data_(rows * columns) {
    parallel_for(0, panels(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = p * kWidth, width = std::min(kWidth, columns_ - first);
        pack_strided(from.data + first * from.column, from.column, from.row, width, rows_,
                     data_.data() + first * rows_, width);
      }
    });
  }
  // c = a · this for m rows, or added to c. Rows of c are `columns` apart.
  void multiply(int64_t m, const C* a, C* c, bool accumulate) const {
    const int64_t work = m * rows_ * kWidth;
    parallel_for(0, panels(), std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(work, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) panel(p, m, a, c, accumulate);
                 });
  }

 private:
  static constexpr int64_t kWidth = 192 / sizeof(C), kDepth = 256;

  int64_t panels() const { return (columns_ + kWidth - 1) / kWidth; }
  void panel(int64_t p, int64_t m, const C* a, C* c, bool accumulate) const {
    const int64_t first = p * kWidth, width = std::min(kWidth, columns_ - first);
    for (int64_t k = 0; k < rows_; k += kDepth)
      gemm<C>(m, width, std::min(kDepth, rows_ - k), {a + k, rows_, 1},
              {data_.data() + first * rows_ + k * width, width, 1}, {c + first, columns_, 1},
              accumulate || k > 0);
  }
  int64_t rows_, columns_;
  Scratch<C, 64> data_;
};

enum class Mode { Tanh, Relu, Gru, Lstm };
Mode mode_of(std::string_view name) {
  return name == "tanh"   ? Mode::Tanh
         : name == "relu" ? Mode::Relu
         : name == "gru"  ? Mode::Gru
                          : Mode::Lstm;
}

// What a call and its derivative share. Matrices are flat and in the type of sums.
template <class C>
struct Sequence {
  Sequence(const KernelCall& call, int mode_at)
      : mode(mode_of(call.arg(mode_at).as_string())),
        reverse(call.arg(mode_at + 1).as_bool()),
        gates(&call.in(0)),
        weight(&call.in(1)),
        hidden(&call.in(2)),
        cell(optional_in(call, 3)),
        bias(optional_in(call, 4)),
        projection(optional_in(call, 5)),
        length(optional_in(call, 6)) {
    steps = call.in(0).shape[0], batch = call.in(0).shape[1], wide = call.in(0).shape[2];
    width = wide / (mode == Mode::Lstm ? 4 : mode == Mode::Gru ? 3 : 1);
    state = call.in(2).shape[1];
  }
  int64_t time(int64_t k) const { return reverse ? steps - 1 - k : k; }
  bool running(int64_t t, int64_t row) const { return !length || length[row] > t; }
  // The states, or cells, that step k begins with.
  const C* before(const C* all, const C* first, int64_t k, int64_t n) const {
    return k == 0 ? first : all + time(k - 1) * batch * n;
  }
  // body(row) for the batch, on several threads if it pays.
  template <class Body>
  void rows(Body&& body) const {
    parallel_for(0, batch, std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(wide, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) body(row);
                 });
  }
  void fill_bias(C* part, int64_t count) const {
    if (!bias) return;
    for (int64_t r = 0; r < count; ++r) std::copy_n(bias.data(), wide, part + r * wide);
  }

  Mode mode;
  bool reverse;
  Converted<C> gates, weight, hidden, cell, bias, projection;
  Converted<int64_t> length;
  int64_t steps, batch, wide, width, state;
  const RowTable<C>& table = row_table<C>();
};

// ---- forward ---------------------------------------------------------------------------------

template <class C>
void relu_cell(const C* x, const C* h, C* state, int64_t n) {
  for (int64_t i = 0; i < n; ++i) state[i] = std::max(x[i] + h[i], C(0));
}

template <class C>
void forward(const Sequence<C>& s, C* states, C* cells) {
  const int64_t n = s.width, rows = s.batch;
  const PackedWeights<C> weight(s.state, s.wide, {s.weight.data(), 1, s.state});
  const bool projects = static_cast<bool>(s.projection);
  const PackedWeights<C> projection(projects ? n : 0, projects ? s.state : 0,
                                    {s.projection.data(), s.state, 1});
  const Scratch<C, 64> part(rows * s.wide), shown(projects ? rows * n : 0);
  for (int64_t k = 0; k < s.steps; ++k) {
    const int64_t t = s.time(k);
    const C* before = s.before(states, s.hidden.data(), k, s.state);
    const C* cell_before = cells ? s.before(cells, s.cell.data(), k, n) : nullptr;
    C* to = states + t * rows * s.state;
    s.fill_bias(part.data(), rows);
    weight.multiply(rows, before, part.data(), static_cast<bool>(s.bias));
    s.rows([&](int64_t r) {
      const C *x = s.gates.data() + (t * rows + r) * s.wide, *h = part.data() + r * s.wide;
      C* made = projects ? shown.data() + r * n : to + r * n;
      if (s.mode == Mode::Tanh) s.table.tanh_cell(x, h, made, n);
      if (s.mode == Mode::Relu) relu_cell(x, h, made, n);
      if (s.mode == Mode::Gru) s.table.gru_cell(x, h, before + r * n, made, n);
      if (s.mode == Mode::Lstm)
        s.table.lstm_cell(x, h, cell_before + r * n, cells + (t * rows + r) * n, made, n);
    });
    if (projects) projection.multiply(rows, shown.data(), to, false);
    for (int64_t r = 0; s.length && r < rows; ++r) {
      if (s.running(t, r)) continue;
      std::copy_n(before + r * s.state, s.state, to + r * s.state);
      if (cells) std::copy_n(cell_before + r * n, n, cells + (t * rows + r) * n);
    }
  }
}

void recurrent(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Sequence<compute_t<T>> sequence(call, 7);
    const Result<T> states(call.out(0)), cells(call.out(1));
    forward(sequence, states.data(), sequence.mode == Mode::Lstm ? cells.data() : nullptr);
    states.finish();
    cells.finish();
  });
}

// ---- derivative ------------------------------------------------------------------------------

template <class C>
struct Gradients {
  C *gates, *weight, *hidden, *cell, *bias, *projection;
};

template <class C>
class Backward {
 public:
  Backward(const Sequence<C>& s, const C* states, const C* cells, const C* grad_states,
           const C* grad_cells, const Gradients<C>& to)
      : s_(s),
        states_(states),
        cells_(cells),
        grad_states_(grad_states),
        grad_cells_(grad_cells),
        to_(to),
        projects_(static_cast<bool>(s.projection)),
        part_(s.steps * s.batch * s.wide),
        of_part_(s.mode == Mode::Gru ? s.steps * s.batch * s.wide : 0),
        of_hidden_(projects_ ? s.batch * s.width : 0),
        shown_(projects_ ? s.batch * s.width : 0) {}

  void run() {
    make_parts();
    std::fill_n(to_.hidden, s_.batch * s_.state, C(0));
    if (cells_) std::fill_n(to_.cell, s_.batch * s_.width, C(0));
    if (projects_) std::fill_n(to_.projection, s_.width * s_.state, C(0));
    const PackedWeights<C> weight(s_.wide, s_.state, {s_.weight.data(), s_.state, 1});
    for (int64_t k = s_.steps - 1; k >= 0; --k) {
      const int64_t t = s_.time(k);
      add(to_.hidden, grad_states_ + t * s_.batch * s_.state, s_.batch * s_.state);
      if (cells_) add(to_.cell, grad_cells_ + t * s_.batch * s_.width, s_.batch * s_.width);
      step(k, t);
      weight.multiply(s_.batch, of_part() + t * s_.batch * s_.wide, to_.hidden, true);
    }
    sum_weight();
    sum_bias();
  }

 private:
  // The gradient of the states' part of the gates; except for gru that of the gates themselves.
  C* of_part() const { return s_.mode == Mode::Gru ? of_part_.data() : to_.gates; }
  static void add(C* to, const C* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  }
  // The times of all steps but the first, [first, first + steps - 1), whose states before are those
  // at one earlier, or in reverse later.
  int64_t later() const { return s_.reverse ? 0 : 1; }
  int64_t earlier() const { return s_.reverse ? 1 : 0; }

  // state · weightᵀ + bias for all steps at once.
  void make_parts() {
    if (s_.steps == 0) return;
    s_.fill_bias(part_.data(), s_.steps * s_.batch);
    const Matrix<const C> weight{s_.weight.data(), 1, s_.state};
    const bool biased = static_cast<bool>(s_.bias);
    gemm<C>(s_.batch, s_.wide, s_.state, {s_.hidden.data(), s_.state, 1}, weight,
            {part_.data() + s_.time(0) * s_.batch * s_.wide, s_.wide, 1}, biased);
    gemm<C>((s_.steps - 1) * s_.batch, s_.wide, s_.state,
            {states_ + earlier() * s_.batch * s_.state, s_.state, 1}, weight,
            {part_.data() + later() * s_.batch * s_.wide, s_.wide, 1}, biased);
  }

  void step(int64_t k, int64_t t) {
    if (projects_) {
      gemm<C>(s_.batch, s_.width, s_.state, {to_.hidden, s_.state, 1},
              {s_.projection.data(), 1, s_.state}, {of_hidden_.data(), s_.width, 1});
      std::fill_n(shown_.data(), s_.batch * s_.width, C(0));
    }
    const C* before = s_.before(states_, s_.hidden.data(), k, s_.state);
    const C* cell_before = cells_ ? s_.before(cells_, s_.cell.data(), k, s_.width) : nullptr;
    s_.rows([&](int64_t r) { row(t, r, before, cell_before); });
    if (!projects_) return;
    gemm<C>(s_.width, s_.state, s_.batch, {shown_.data(), 1, s_.width}, {to_.hidden, s_.state, 1},
            {to_.projection, s_.state, 1}, true);
    for (int64_t r = 0; r < s_.batch; ++r)
      if (s_.running(t, r)) std::fill_n(to_.hidden + r * s_.state, s_.state, C(0));
  }

  void row(int64_t t, int64_t r, const C* before, const C* cell_before) {
    const int64_t n = s_.width, at = (t * s_.batch + r) * s_.wide;
    const C *x = s_.gates.data() + at, *h = part_.data() + at;
    C *to = to_.gates + at, *grad = to_.hidden + r * s_.state;
    if (!s_.running(t, r)) {  // the gradient stays unchanged
      std::fill_n(to, s_.wide, C(0));
      if (s_.mode == Mode::Gru) std::fill_n(of_part_.data() + at, s_.wide, C(0));
      return;
    }
    if (s_.mode == Mode::Gru)
      return s_.table.gru_grad(x, h, before + r * n, grad, to, of_part_.data() + at, n);
    if (s_.mode == Mode::Lstm)
      s_.table.lstm_grad(x, h, cell_before + r * n, cells_ + (t * s_.batch + r) * n,
                         projects_ ? of_hidden_.data() + r * n : grad, to_.cell + r * n, to,
                         projects_ ? shown_.data() + r * n : nullptr, n);
    else if (s_.mode == Mode::Tanh)
      s_.table.tanh_grad(x, h, grad, to, n);
    else
      for (int64_t i = 0; i < n; ++i) to[i] = x[i] + h[i] > 0 ? grad[i] : C(0);
    if (!projects_) std::fill_n(grad, n, C(0));
  }

  void sum_weight() {
    const auto product = [&](int64_t rows, const C* part, const C* state, bool accumulate) {
      gemm<C>(s_.wide, s_.state, rows, {part, 1, s_.wide}, {state, s_.state, 1},
              {to_.weight, s_.state, 1}, accumulate);
    };
    if (s_.steps == 0) return std::fill(to_.weight, to_.weight + s_.wide * s_.state, C(0));
    product((s_.steps - 1) * s_.batch, of_part() + later() * s_.batch * s_.wide,
            states_ + earlier() * s_.batch * s_.state, false);
    product(s_.batch, of_part() + s_.time(0) * s_.batch * s_.wide, s_.hidden.data(), true);
  }

  // In blocks of rows, so that no chain of additions is long.
  void sum_bias() {
    constexpr int64_t kBlock = 64, kColumns = 256;
    const int64_t rows = s_.steps * s_.batch;
    parallel_for(0, (s_.wide + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = p * kColumns, n = std::min(kColumns, s_.wide - first);
        C* to = to_.bias + first;
        std::fill_n(to, n, C(0));
        for (int64_t block = 0; block < rows; block += kBlock) {
          C sums[kColumns] = {};
          for (int64_t r = block; r < std::min(rows, block + kBlock); ++r)
            add(sums, of_part() + r * s_.wide + first, n);
          add(to, sums, n);
        }
      }
    });
  }

  const Sequence<C>& s_;
  const C *states_, *cells_, *grad_states_, *grad_cells_;
  Gradients<C> to_;
  bool projects_;
  Scratch<C, 64> part_, of_part_, of_hidden_, shown_;
};

void recurrent_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Sequence<C> sequence(call, 11);
    const bool lstm = sequence.mode == Mode::Lstm;
    const Converted<C> states(&call.in(7)), cells(&call.in(8)), grad_states(&call.in(9)),
        grad_cells(&call.in(10));
    const Result<T> gates(call.out(0)), weight(call.out(1)), hidden(call.out(2)), cell(call.out(3)),
        bias(call.out(4)), projection(call.out(5));
    Backward<C>(
        sequence, states.data(), lstm ? cells.data() : nullptr, grad_states.data(),
        grad_cells.data(),
        {gates.data(), weight.data(), hidden.data(), cell.data(), bias.data(), projection.data()})
        .run();
    for (const Result<T>* result : {&gates, &weight, &hidden, &cell, &bias, &projection})
      result->finish();
  });
}

}  // namespace

KernelList recurrent_kernels() {
  static const oar_kernel list[] = {
      {"recurrent", 1, "cpu:steps", nullptr, kernel_entry<recurrent>},
      {"recurrent_grad", 1, "cpu:steps", nullptr, training_entry<recurrent_grad>},
  };
  return list;
}

}  // namespace oar::cpu

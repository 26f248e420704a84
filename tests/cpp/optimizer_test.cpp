// Parameter updates: the fused kernels against their decompositions and against numbers worked out
// here.
#include <gtest/gtest.h>

#include <cmath>

#include "oar/ops/core/registry.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

Tensor vector_of(const std::vector<double>& values, DType dtype) {
  return Tensor::from_vector(values, {{static_cast<int64_t>(values.size())}}, dtype);
}
Tensor number(double value) { return full({}, Scalar(value), DType::Float32); }

// 601 elements: two whole blocks of the kernel and a rest.
std::vector<double> wave(double phase, int64_t n = 601) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(std::sin(0.37 * static_cast<double>(i) + phase));
  return values;
}

double tolerance(DType dtype) {
  if (dtype == DType::Float64) return 1e-12;
  if (dtype == DType::Float32) return 2e-6;
  return dtype == DType::Float16 ? 2e-3 : 2e-2;
}

void expect_near(const Tensor& actual, const std::vector<double>& wanted, const char* what) {
  const std::vector<double> found = actual.to_vector<double>();
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], tolerance(actual.dtype()) * (1 + std::fabs(wanted[i])))
        << what << " at " << i << ", " << name_of(actual.dtype());
}

template <class... A>
void decompose(const char* op, const A&... args) {
  const Value values[] = {Value(args)...};
  get_op(op).def().decompose(Args(values, sizeof...(args)));
}

const DType kTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16};

TEST(Optimizer, Sgd) {
  for (DType dtype : kTypes) {
    const std::vector<double> g = vector_of(wave(1), dtype).to_vector<double>();
    const std::vector<double> start = vector_of(wave(0), dtype).to_vector<double>();
    std::vector<double> wanted;
    for (size_t i = 0; i < start.size(); ++i)
      wanted.push_back(start[i] - 0.5 * (g[i] + 0.25 * start[i]));
    const Tensor fused = vector_of(start, dtype), plain = vector_of(start, dtype);
    const std::vector<Tensor> grads{vector_of(g, dtype)}, params{plain};
    sgd_({fused}, grads, number(0.5), 0.25);
    decompose("sgd_", TensorList(params), TensorList(grads), number(0.5), 0.25);
    expect_near(fused, wanted, "kernel");
    expect_near(plain, wanted, "decomposition");
  }
}

TEST(Optimizer, SgdOfSelectedRows) {
  const std::vector<double> start = wave(0, 12);
  for (double decay : {0.0, 0.5}) {
    for (DType dtype : kTypes) {
      const std::vector<double> p = vector_of(start, dtype).to_vector<double>();
      const Tensor rows = Tensor::from_vector(std::vector<int64_t>{2, 0, 2}, {{3}}, DType::Int64);
      const Tensor values = Tensor::from_vector(wave(1, 9), {{3, 3}}, dtype);
      const std::vector<double> v = values.to_vector<double>();
      std::vector<double> wanted = p;
      for (double& w : wanted) w -= 0.125 * decay * w;
      for (size_t k = 0; k < 3; ++k) {
        wanted[6 + k] -= 0.125 * (v[k] + v[6 + k]);
        wanted[k] -= 0.125 * v[3 + k];
      }
      const Tensor fused = Tensor::from_vector(p, {{4, 3}}, dtype);
      const Tensor plain = Tensor::from_vector(p, {{4, 3}}, dtype);
      const std::vector<Tensor> grads{make_selected_rows(rows, values, fused.dims())},
          params{plain};
      sgd_({fused}, grads, number(0.125), decay);
      decompose("sgd_", TensorList(params), TensorList(grads), number(0.125), decay);
      expect_near(fused, wanted, "kernel");
      expect_near(plain, wanted, "decomposition");
    }
  }
}

TEST(Optimizer, SgdRefusesARowThatIsNotThere) {
  const Tensor param = vector_of(wave(0, 4), DType::Float32);
  const Tensor rows = Tensor::from_vector(std::vector<int64_t>{4}, {{1}}, DType::Int64);
  const Tensor grad = make_selected_rows(rows, vector_of({1.0}, DType::Float32), param.dims());
  EXPECT_THROW(sgd_({param}, {grad}, number(0.1)), Error);
}

TEST(Optimizer, Momentum) {
  for (bool nesterov : {false, true}) {
    for (DType dtype : kTypes) {
      const std::vector<double> p = vector_of(wave(0), dtype).to_vector<double>();
      const std::vector<double> g = vector_of(wave(1), dtype).to_vector<double>();
      std::vector<double> param = p, velocity(p.size(), 0.0);
      const Tensor fused = vector_of(p, dtype), plain = vector_of(p, dtype);
      const DType wide = dtype == DType::Float64 ? dtype : DType::Float32;
      const Tensor v1 = zeros(fused.dims(), wide), v2 = zeros(fused.dims(), wide);
      const std::vector<Tensor> grads{vector_of(g, dtype)}, params{plain}, velocities{v2};
      for (int step = 0; step < 3; ++step) {
        momentum_({fused}, grads, {v1}, number(0.1), 0.75, nesterov, 0.125);
        decompose("momentum_", TensorList(params), TensorList(grads), TensorList(velocities),
                  number(0.1), 0.75, nesterov, 0.125);
        for (size_t i = 0; i < param.size(); ++i) {
          const double grad = g[i] + 0.125 * param[i];
          velocity[i] = 0.75 * velocity[i] + grad;
          param[i] -= 0.1f * (nesterov ? grad + 0.75 * velocity[i] : velocity[i]);
        }
      }
      expect_near(fused, param, "kernel");
      expect_near(plain, param, "decomposition");
    }
  }
}

// Adam as its paper writes it, with the decay of AdamW.
struct ReferenceAdam {
  std::vector<double> param, m, v;
  int steps = 0;
  explicit ReferenceAdam(const std::vector<double>& p) : param(p), m(p.size(), 0), v(p.size(), 0) {}
  void step(const std::vector<double>& g, double lr, double decay) {
    ++steps;
    for (size_t i = 0; i < param.size(); ++i) {
      m[i] = 0.8 * m[i] + 0.2 * g[i];
      v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(0.8, steps)),
                   square = v[i] / (1 - std::pow(0.95, steps));
      param[i] = param[i] * (1 - lr * decay) - lr * mean / (std::sqrt(square) + 1e-4);
    }
  }
};

TEST(Optimizer, AdamW) {
  for (DType dtype : kTypes) {
    const std::vector<double> g = vector_of(wave(1), dtype).to_vector<double>();
    ReferenceAdam reference(vector_of(wave(0), dtype).to_vector<double>());
    const DType moments = dtype == DType::Float64 ? dtype : DType::Float32;
    struct State {
      std::vector<Tensor> param, m, v;
      Tensor steps = number(0);
      State(const std::vector<double>& p, DType type, DType moment)
          : param{vector_of(p, type)},
            m{zeros(param[0].dims(), moment)},
            v{zeros(param[0].dims(), moment)} {}
    };
    State fused(reference.param, dtype, moments), plain(reference.param, dtype, moments);
    const std::vector<Tensor> grads{vector_of(g, dtype)};
    for (int step = 0; step < 4; ++step) {
      adamw_(fused.param, grads, fused.m, fused.v, number(0.01), fused.steps, 0.8, 0.95, 1e-4, 0.1);
      decompose("adamw_", TensorList(plain.param), TensorList(grads), TensorList(plain.m),
                TensorList(plain.v), number(0.01), plain.steps, 0.8, 0.95, 1e-4, 0.1, std::nullopt);
      reference.step(g, 0.01f, 0.1);
    }
    EXPECT_EQ(fused.steps.item_double(), 4);
    EXPECT_EQ(plain.steps.item_double(), 4);
    for (const State* s : {&fused, &plain}) {
      expect_near(s->param[0], reference.param, "param");
      expect_near(s->m[0], reference.m, "moment1");
      expect_near(s->v[0], reference.v, "moment2");
    }
  }
}

TEST(Optimizer, AdamWKeepsMasterCopies) {
  const std::vector<double> g = vector_of(wave(1), DType::BFloat16).to_vector<double>();
  ReferenceAdam reference(wave(0));
  const Tensor param = vector_of(wave(0), DType::BFloat16),
               master = vector_of(wave(0), DType::Float32);
  const Tensor m = zeros(param.dims(), DType::Float32), v = zeros(param.dims(), DType::Float32);
  const Tensor steps = number(0);
  for (int step = 0; step < 20; ++step) {
    adamw_({param}, {vector_of(g, DType::BFloat16)}, {m}, {v}, number(1e-4), steps, 0.8, 0.95, 1e-4,
           0.0, {master});
    reference.step(g, 1e-4f, 0.0);
  }
  expect_near(master, reference.param, "master");
  EXPECT_EQ(param.to_vector<double>(), cast(master, DType::BFloat16).to_vector<double>());
}

TEST(Optimizer, UpdatesManyTensorsOfAnyLayout) {
  const Tensor base = Tensor::from_vector(wave(0, 12), {{3, 4}}, DType::Float32);
  const Tensor view = transpose(base, {1, 0}), small = vector_of({1, 2}, DType::Float64);
  const Tensor empty = zeros({0, 5}, DType::Float32);
  const auto version = base->storage->version();
  sgd_({view, small, empty}, {ones({4, 3}), vector_of({1, 1}, DType::Float64), zeros({0, 5})},
       number(0.5));
  std::vector<double> wanted = wave(0, 12);
  for (double& w : wanted) w -= 0.5;
  expect_near(base, wanted, "a view");
  expect_near(small, {0.5, 1.5}, "float64");
  EXPECT_GT(base->storage->version(), version);
}

TEST(Optimizer, SaysWhatDoesNotFit) {
  const Tensor param = vector_of({1, 2}, DType::Float32);
  EXPECT_THROW(sgd_({param}, {}, number(0.1)), Error);
  EXPECT_THROW(sgd_({param}, {vector_of({1, 2, 3}, DType::Float32)}, number(0.1)), Error);
  EXPECT_THROW(sgd_({param}, {param}, param), Error);
  EXPECT_THROW(sgd_({cast(param, DType::Int64)}, {param}, number(0.1)), Error);
  try {
    momentum_({param}, {param}, {vector_of({1}, DType::Float32)}, number(0.1));
    FAIL() << "a velocity of another shape passed";
  } catch (const Error& error) {
    EXPECT_NE(error.text().find("velocities[0] has shape [1]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace oar

// Every op's record, held against itself: rules that are there, and inference that tells the truth.
#include "oar/ops/core/registry.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <set>

#include "oar/base/string_util.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/trait_names.h"
#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

using Problems = std::vector<std::string>;

std::string listed(const Problems& problems) {
  return format("{} problems:\n{}", problems.size(), join(problems, "\n"));
}

// A dtype the op takes: float32 where it can.
DType test_dtype(const Op& op) {
  for (DType t : {DType::Float32, DType::Int64, DType::Complex64, DType::Bool})
    if (op.accepts(t)) return t;
  return DType::Float32;
}

Tensor bare(const Tensor& t) {
  return t.defined() ? Tensor::meta(t.dims(), t.dtype(), t.device()) : Tensor();
}

// The same call on tensors without content.
Frame bare_call(const Frame& frame) {
  Frame meta = frame.clone();
  for (size_t i = 0; i < frame.size(); ++i) {
    if (frame[i].is_tensor()) meta.set_tensor(i, bare(frame[i].as_tensor()));
    if (frame[i].is_tensors()) {
      std::vector<Tensor> list;
      for (const Tensor& t : frame[i].as_tensors()) list.push_back(bare(t));
      meta.set_tensors(i, std::move(list));
    }
  }
  return meta;
}

// The call with axis `axis` of the tensor number `which` replaced by a symbol; none when there is no
// such axis. `which` and `axis` walk over all of them.
struct SymbolicCall {
  Frame frame;
  std::pair<Dim, int64_t> binding;
};
std::vector<SymbolicCall> symbolic_calls(const Frame& meta) {
  std::vector<SymbolicCall> calls;
  const auto with_symbol = [](const Tensor& t, int axis, Dim symbol) {
    Shape shape = t.shape();
    shape[static_cast<size_t>(axis)] = symbol;
    return Tensor::meta(shape, t.dtype(), t.device());
  };
  for (size_t i = 0; i < meta.size(); ++i) {
    const bool list = meta[i].is_tensors();
    const size_t count = list ? meta[i].as_tensors().size() : meta[i].is_tensor() ? 1 : 0;
    for (size_t k = 0; k < count; ++k) {
      const Tensor t = list ? meta[i].as_tensors()[k] : meta[i].as_tensor();
      for (int axis = 0; t.defined() && axis < t.rank(); ++axis) {
        const int64_t size = t.dim(axis).value();
        if (size == 0) continue;  // whether a tensor is empty is never left open
        SymbolicCall call{meta.clone(), {Dim::symbol("n", size), size}};
        const Tensor changed = with_symbol(t, axis, call.binding.first);
        if (list) {
          std::vector<Tensor> tensors(meta[i].as_tensors().begin(), meta[i].as_tensors().end());
          tensors[k] = changed;
          call.frame.set_tensors(i, std::move(tensors));
        } else {
          call.frame.set_tensor(i, changed);
        }
        calls.push_back(std::move(call));
      }
    }
  }
  return calls;
}

std::string describe_call(const Op& op, const Frame& frame) {
  std::string text = op.name() + "(";
  for (size_t i = 0; i < frame.size(); ++i) text += (i ? ", " : "") + frame[i].str();
  return text + ")";
}

// What differs between inferred and real results; empty where nothing does.
std::string difference(const Op& op, const Outputs& inferred, const Outputs& real,
                       std::span<const std::pair<Dim, int64_t>> bindings) {
  if (inferred.size() != real.size())
    return format("{} results instead of {}", inferred.size(), real.size());
  for (size_t i = 0; i < real.size(); ++i) {
    if (inferred[i].defined() != real[i].defined()) return format("result {} is there or not", i);
    if (!real[i].defined()) continue;
    const Tensor &a = inferred[i], &b = real[i];
    bool equal = a.dtype() == b.dtype() && a.rank() == b.rank();
    if (!op.has(Trait::DataDependent))  // else sizes are bounds or fresh symbols
      for (int axis = 0; equal && axis < a.rank(); ++axis)
        equal = a.dim(axis).evaluate(bindings) == b.dim(axis).value();
    if (!equal) return format("result {} is {} instead of {}", i, a.describe(), b.describe());
  }
  return {};
}

// Calls body(op, frame) for every sample of every op that has some.
template <class F>
void for_each_sample(F&& body) {
  for (const Op* op : Registry::get().all()) {
    if (op->inplace_of() || !op->def().samples) continue;
    uint64_t seed = 1;
    for (const Sample& sample : op->def().samples())
      body(*op, sample.make(op->schema(), test_dtype(*op), seed++));
  }
}

template <class F>
void attempt(Problems& problems, const std::string& what, F&& body) {
  try {
    const std::string wrong = body();
    if (!wrong.empty()) problems.push_back(what + ": " + wrong);
  } catch (const std::exception& error) {
    problems.push_back(what + ": throws " + error.what());
  }
}

// The size of an axis decides how many results there are, or of what rank: it has to be a number.
bool needs_a_number(const Op& op) {
  static const std::set<std::string> kOps = {"unbind", "unstack", "gather_nd", "scatter_nd",
                                             "scatter_nd_add"};
  return kOps.contains(op.name());
}

TEST(Registry, RecordsAreComplete) {
  Problems problems = Registry::get().validate();
  // Ops that other tests have registered need no samples.
  std::erase_if(problems, [](const std::string& line) { return line.starts_with("test_"); });
  EXPECT_TRUE(problems.empty()) << listed(problems);
}

TEST(Registry, EveryTraitHasAName) {
  uint32_t named = 0, used = 0;
  for (const auto& [trait, name] : trait_names()) {
    const auto bit = static_cast<uint32_t>(trait);
    EXPECT_TRUE(std::has_single_bit(bit) && (named & bit) == 0 && !name.empty()) << name;
    named |= bit;
  }
  for (const Op* op : Registry::get().all()) used |= static_cast<uint32_t>(op->def().traits);
  EXPECT_EQ(used & ~named, 0u);
  EXPECT_NE(used, 0u);
}

TEST(Registry, NothingLacksInferenceOrDerivative) {
  Problems problems;
  for (const std::string& line : Registry::get().unsupported())
    if (line.find(": infer: ") != std::string::npos || line.find(": vjp: ") != std::string::npos)
      problems.push_back(line);
  EXPECT_TRUE(problems.empty()) << listed(problems);
}

TEST(Registry, InferenceAgreesWithARealRun) {
  Problems problems;
  int calls = 0;
  for_each_sample([&](const Op& op, const Frame& frame) {
    attempt(problems, describe_call(op, frame), [&] {
      ++calls;
      const Outputs real = dispatch(op, frame.args());
      const Frame meta = bare_call(frame);
      return difference(op, dispatch(op, meta.args()), real, {});
    });
  });
  EXPECT_TRUE(problems.empty()) << listed(problems);
  EXPECT_GT(calls, 500);
}

TEST(Registry, InferenceAgreesWithARealRunWhenSizesAreSymbolic) {
  Problems problems;
  for_each_sample([&](const Op& op, const Frame& frame) {
    if (op.has(Trait::Inplace)) return;
    Outputs real;
    try {
      real = dispatch(op, frame.args());
    } catch (const std::exception&) {
      return;  // the test above reports it
    }
    for (const SymbolicCall& call : symbolic_calls(bare_call(frame))) {
      attempt(problems, describe_call(op, call.frame), [&]() -> std::string {
        const DimAssumptions follow_hints;
        try {
          return difference(op, dispatch(op, call.frame.args()), real, {&call.binding, 1});
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::Unsupported && needs_a_number(op)) return {};
          throw;
        }
      });
    }
  });
  EXPECT_TRUE(problems.empty()) << listed(problems);
}

// `name_` leaves in its operand what `name` returns.
TEST(Registry, InPlaceOpsDoWhatTheirNamesakesDo) {
  Problems problems;
  for_each_sample([&](const Op& op, const Frame& frame) {
    if (!op.inplace() || op.has(Trait::Random)) return;
    attempt(problems, describe_call(*op.inplace(), frame), [&]() -> std::string {
      const Tensor expected = dispatch(op, frame.args())[0];
      const Tensor x = assign(frame[0].as_tensor());
      if (!(expected.shape() == x.shape()) || expected.dtype() != x.dtype()) return {};
      Frame written = frame.clone();
      written.set_tensor(0, x);
      const uint32_t version = x->storage->version();
      const Tensor result = dispatch(*op.inplace(), written.args())[0];
      if (!result.is_same(x)) return "answers another tensor";
      if (x->storage->version() == version) return "does not count a version";
      const size_t bytes = static_cast<size_t>(x->numel) * size_of(x.dtype());
      const Tensor compact = expected.is_contiguous() ? expected : assign(expected);
      return std::memcmp(x->data, compact->data, bytes) == 0 ? "" : "gives other values";
    });
  });
  EXPECT_TRUE(problems.empty()) << listed(problems);
}

TEST(Registry, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(Registry::get().find("no_such_op"), nullptr);
  try {
    get_op("multipy");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::NotFound);
    EXPECT_NE(std::string(error.what()).find("'multiply'"), std::string::npos) << error.what();
  }
}

TEST(Registry, TakesOpsAtRunTime) {
  const auto twice = [](const Args& args) -> Made {
    static const Op& add = get_op("add");
    const Value values[] = {args[0], args[0]};
    return Made(dispatch(add, Args(values, 2)));
  };
  static const Op* mine = nullptr;
  if (!mine) {  // the registry outlives a repetition of this test
    std::string schema = "test_twice(Tensor x) -> Tensor", brief = "x + x.";
    OpDef def;
    def.schema = schema.c_str();
    def.brief = brief.c_str();
    def.decompose = twice;
    def.traits = Trait::HasInplace;
    mine = &Registry::get().add(def, "test");
  }
  EXPECT_STREQ(mine->def().brief, "x + x.") << "texts are copied";
  EXPECT_EQ(Registry::get().find("test_twice"), mine);
  const Tensor x = Tensor::from_vector(std::vector<double>{1, 2}, Shape{2}, DType::Float32);
  const Value values[] = {Value(x)};
  EXPECT_EQ(dispatch(*mine, Args(values, 1))[0].to_vector<double>(), (std::vector<double>{2, 4}));
  EXPECT_EQ(infer_results(*mine, Args(values, 1))[0].shape, (Shape{2}));
  dispatch(*mine->inplace(), Args(values, 1));
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{2, 4}));

  OpDef again;
  again.schema = "test_twice(Tensor x) -> Tensor";
  again.decompose = twice;
  EXPECT_THROW(Registry::get().add(again, "test"), Error);
  OpDef broken;
  broken.schema = "test_broken(Tensor x -> Tensor";
  EXPECT_THROW(Registry::get().add(broken, "test"), Error);
  OpDef saves;
  saves.schema = "test_saves(Tensor x) -> Tensor";
  saves.saves = "y";
  EXPECT_THROW(Registry::get().add(saves, "test"), Error);
}

}  // namespace
}  // namespace oar

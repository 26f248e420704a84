// Every op of the registry, captured against eager: values, gradients, and with symbolic sizes.
#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/device/generator.h"
#include "oar/ir/parse.h"
#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

// One sample of an op as a function of its tensors.
struct Call {
  Call(const Op& o, const Sample& sample)
      : op(o), frame(sample.make(o.schema(), DType::Float32, 11)) {
    for_each_tensor(frame.args(), [&](const Tensor& t) { inputs.push_back(t); });
  }

  Tensors operator()(const Tensors& given) const {
    Frame args = frame.clone();
    size_t next = 0;
    for (size_t i = 0; i < frame.size(); ++i) {
      // A leaf cannot be written; a result of it can.
      const bool written = op.schema().parameters[i].written;
      if (frame[i].is_tensor()) {
        args.set_tensor(i, written ? assign(given[next]) : given[next]);
        ++next;
      }
      if (!frame[i].is_tensors()) continue;
      Tensors list;
      for (const Tensor& t : frame[i].as_tensors()) list.push_back(t.defined() ? given[next++] : t);
      args.set_tensors(i, std::move(list));
    }
    generator::seed(5);
    const Outputs made = dispatch(op, args.args());
    Tensors outputs;
    for (const Tensor& t : made)
      if (t.defined()) outputs.push_back(t);
    return outputs;
  }

  // Values, and gradients of everything that has one.
  Tensors with_gradients(const Tensors& given) const {
    Tensors outputs = (*this)(given), roots, sources;
    for (const Tensor& t : outputs)
      if (!stop_gradient(t)) roots.push_back(t);
    for (const Tensor& t : given)
      if (!stop_gradient(t)) sources.push_back(t);
    Tensors all;
    for (const Tensor& t : outputs) all.push_back(detach(t));
    if (roots.empty() || sources.empty()) return all;
    for (const Tensor& g : grad(roots, sources, {}, {}, true))
      if (g.defined()) all.push_back(g);
    return all;
  }

  Tensors copies(bool gradients) const {
    Tensors list;
    for (const Tensor& t : inputs) {
      list.push_back(assign(t));
      if (gradients && is_differentiable(t.dtype())) set_stop_gradient(list.back(), false);
    }
    return list;
  }

  const Op& op;
  const Frame frame;
  Tensors inputs;
};

bool equal_values(const Tensor& a, const Tensor& b) {
  if (a.describe() != b.describe()) return false;
  const auto x = a.to_vector<std::complex<double>>(), y = b.to_vector<std::complex<double>>();
  const auto close = [](double u, double v) {
    return u == v || (std::isnan(u) && std::isnan(v)) ||
           std::abs(u - v) <= 1e-5 * (1 + std::abs(v));
  };
  for (size_t i = 0; i < x.size(); ++i)
    if (!close(x[i].real(), y[i].real()) || !close(x[i].imag(), y[i].imag())) return false;
  return true;
}

enum class Mode { Values, Gradients, Symbolic };

struct Count {
  size_t compared = 0, not_for_eager = 0;
};

// Ops that can only be run by writing; capture says so.
constexpr const char* kOnlyWrites = "has no functional form";

// The text of a program is the whole program, but for the memory of its states.
std::string read_back(const Program& program) {
  const PrintOptions options{.locations = true, .largest_constant = INT64_MAX};
  const std::string text = to_text(program, options);
  const auto state = [&](const std::string& name, const ValueType&) -> Tensor {
    for (const State& s : program.states)
      if (program.label(s.value) == "%" + name) return s.tensor;
    return {};
  };
  const std::string again = to_text(parse_program(text, {state}), options);
  return again == text ? "" : format("reads back as\n{}\ninstead of\n{}", again, text);
}

// What is wrong with the captured call; empty where nothing is.
std::string compare(const Call& call, Mode mode, Count& count) {
  const bool gradients = mode == Mode::Gradients;
  const auto function = [&](const Tensors& in) {
    return gradients ? call.with_gradients(in) : call(in);
  };
  Tensors wanted;
  try {
    wanted = function(call.copies(gradients));
  } catch (const Error&) {
    ++count.not_for_eager;  // an in-place op that would have to grow, another dtype
    return {};
  }
  std::vector<InputSpec> specs;
  for (const Tensor& t : call.inputs) {
    InputSpec spec{t.dtype(), t.shape(), "", !(gradients && is_differentiable(t.dtype()))};
    for (size_t i = 0; mode == Mode::Symbolic && i < spec.shape.size(); ++i)
      if (spec.shape[i].value() > 1)
        spec.shape[i] = Dim::symbol(format("n{}", i), spec.shape[i].value());
    specs.push_back(std::move(spec));
  }
  try {
    const Executor executor(capture(function, specs));
    if (const std::vector<std::string> problems = verify(executor.program()); !problems.empty())
      return join(problems, "; ");
    if (const std::string problem = read_back(executor.program()); !problem.empty()) return problem;
    generator::seed(5);
    const Tensors got = executor.run(call.copies(false));
    if (got.size() != wanted.size()) return "another number of results";
    for (size_t i = 0; i < got.size(); ++i)
      if (!equal_values(got[i], wanted[i]))
        return format("result {} differs\n{}", i, to_text(executor.program()));
  } catch (const Error& error) {
    if (error.text().find(kOnlyWrites) != std::string::npos) return {};
    return format("refused: {}", error.what());
  }
  ++count.compared;
  return {};
}

void check_all(Mode mode) {
  Count count;
  for (const Op* op : Registry::get().all()) {
    if (!op->def().samples || op->name().starts_with("test_")) continue;
    const Samples samples = op->def().samples();
    for (size_t i = 0; i < samples.size(); ++i) {
      const std::string problem = compare(Call(*op, samples[i]), mode, count);
      EXPECT_TRUE(problem.empty()) << op->name() << " sample " << i << ": " << problem;
    }
  }
  EXPECT_GT(count.compared, 10 * count.not_for_eager);
}

TEST(CaptureRegistry, Values) { check_all(Mode::Values); }
TEST(CaptureRegistry, Gradients) { check_all(Mode::Gradients); }
TEST(CaptureRegistry, SymbolicSizes) { check_all(Mode::Symbolic); }

}  // namespace
}  // namespace oar

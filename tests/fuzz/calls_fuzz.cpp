// Random direct calls of every op, the inner ones included: a result or a user's error, whatever the
// operands and attributes are. Eager, recorded, captured, batched and with tangents.
#include <exception>

#include "hostile.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/autograd/transform.h"
#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/executor.h"
#include "oar/device/generator.h"
#include "survey.h"

namespace fuzz {
namespace {

using namespace oar;
using Tensors = std::vector<Tensor>;

enum class Mode { Eager, Recorded, Captured, Batched, Tangents };
const char* name_of_mode(Mode mode) {
  static const char* const names[] = {"eager", "recorded", "captured", "vmap", "jvp"};
  return names[static_cast<int>(mode)];
}

Mode random_mode(Random& random) {
  static const std::vector<Mode> modes = {Mode::Eager,    Mode::Eager,    Mode::Eager,
                                          Mode::Recorded, Mode::Captured, Mode::Captured,
                                          Mode::Batched,  Mode::Tangents};
  return random.pick(modes);
}

// Reads every element, so that a result which points nowhere is seen.
void read(const Tensors& results) {
  for (const Tensor& t : results)
    if (t.defined() && t.is_dense() && t->numel < 100000) t.to_vector<std::complex<double>>();
}

// The call as a function of its tensors.
struct Call {
  const Op& op;
  const Frame& frame;

  Tensors inputs() const {
    Tensors list;
    for_each_tensor(frame.args(), [&](const Tensor& t) { list.push_back(t); });
    return list;
  }
  Tensors operator()(const Tensors& given) const {
    Frame args = frame.clone();
    size_t next = 0;
    for (size_t i = 0; i < frame.size(); ++i) {
      if (frame[i].is_tensor()) args.set_tensor(i, given[next++]);
      if (!frame[i].is_tensors()) continue;
      Tensors list;
      for (const Tensor& t : frame[i].as_tensors()) list.push_back(t.defined() ? given[next++] : t);
      args.set_tensors(i, std::move(list));
    }
    const Outputs made = dispatch(op, args.args());
    return {made.begin(), made.end()};
  }
};

void run_recorded(const Call& call) {
  Tensors given = call.inputs(), roots, sources;
  for (Tensor& t : given) {
    t = Tensor(t->alias());
    if (!is_differentiable(t.dtype())) continue;
    set_stop_gradient(t, false);
    sources.push_back(t);
  }
  const Tensors results = call(given);
  read(results);
  for (const Tensor& t : results)
    if (t.defined() && !stop_gradient(t)) roots.push_back(t);
  if (!roots.empty() && !sources.empty()) read(grad(roots, sources, {}, {}, true));
}

void run_captured(const Call& call) {
  const Tensors given = call.inputs();
  std::vector<InputSpec> specs;
  for (const Tensor& t : given) specs.push_back({t.dtype(), t.shape()});
  const Executor executor(capture([&](const Tensors& in) { return call(in); }, specs));
  read(executor.interpret(given));
  read(executor.run(given));
}

void run_batched(const Call& call, Random& random) {
  const Tensors given = call.inputs();
  std::vector<int64_t> axes;
  for (const Tensor& t : given)
    axes.push_back(t.rank() > 0 && random.chance(0.7) ? static_cast<int64_t>(random.below(2)) - 1
                                                      : kNoAxis);
  const std::vector<int64_t> out = {0};
  read(vmap([&](const Tensors& in) { return call(in); }, given, axes, out));
}

void run_with_tangents(const Call& call, Random& random) {
  const Tensors given = call.inputs();
  Tensors tangents;
  for (const Tensor& t : given)
    tangents.push_back(is_differentiable(t.dtype()) && random.chance(0.7)
                           ? random_tensor(random, t.shape(), t.dtype())
                           : Tensor());
  const auto [values, slopes] = jvp([&](const Tensors& in) { return call(in); }, given, tangents);
  read(values);
  read(slopes);
}

void run(const Call& call, Mode mode, Random& random) {
  switch (mode) {
    case Mode::Eager:
      return read(call(call.inputs()));
    case Mode::Recorded:
      return run_recorded(call);
    case Mode::Captured:
      return run_captured(call);
    case Mode::Batched:
      return run_batched(call, random);
    case Mode::Tangents:
      return run_with_tangents(call, random);
  }
}

std::string attempt(uint64_t seed, uint64_t number) {
  Random random(seed, number);
  // Every op in turn, so that none is left out of a short run.
  const auto& ops = callable_ops();
  const Op& op = *ops[(number + seed) % ops.size()];
  const Frame frame = random_call(random, op);
  const Mode mode = random_mode(random);
  describe(std::string(name_of_mode(mode)) + " " + describe_call(op, frame.args()));
  generator::seed(number);
  try {
    run({op, frame}, mode, random);
    count("results");
  } catch (const Error& error) {
    count("errors");
    if (error.kind() == ErrorKind::Internal || error.kind() == ErrorKind::Runtime)
      return error.what();
  } catch (const std::exception& error) {
    return std::string("not an Error: ") + error.what();
  }
  return {};
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  // A limit keeps every tensor in a block of its own, and large sizes from being tried.
  oar::set_flag("memory_limit_mb", "256");
  oar::set_flag("cache_allocator", "0");
  return fuzz::survey(argc, argv, "Random direct calls of every op.", fuzz::attempt);
}

#include "oar/interop/graph_model.h"

#include <mutex>
#include <set>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/compiler/executor.h"
#include "oar/compiler/passes/pass.h"
#include "oar/interop/conversion_error.h"
#include "oar/ops/gen/compare.h"

namespace oar::interop {

// ---- capture -----------------------------------------------------------------------------------

GraphCapture::GraphCapture() : capture_("main") {
  capture_.follow_outside();  // weights are states, which files keep apart from the program
}

Value GraphCapture::input(const std::string& name, const Tensor& like) {
  const Capture::Scope scope(capture_);
  InputSpec spec{.dtype = like.dtype(), .name = name};
  for (const Dim d : like.dims()) spec.shape.push_back(d);
  return {capture_.input(spec), false};
}

Value GraphCapture::constant(const std::string& name, const Tensor& tensor) {
  history_of(tensor).name = name;
  return {tensor, true};
}

std::vector<Value> GraphCapture::call(const std::string& what, const std::vector<Value>& inputs,
                                      const std::function<std::vector<Tensor>()>& convert,
                                      bool always) {
  bool known = !always;
  for (const Value& input : inputs) known &= input.known || !input.tensor.defined();
  const auto converted = [&]() -> std::vector<Tensor> {
    if (known || Capture::current())
      return convert();  // inside a region the calls belong to its capture
    const Capture::Scope scope(capture_);
    return convert();
  };
  std::vector<Value> results;
  for (Tensor& t : naming_node([&] { return what; }, converted))
    results.push_back({std::move(t), known});
  return results;
}

Program GraphCapture::finish(const std::vector<Value>& outputs) {
  std::vector<Tensor> tensors;
  for (const Value& output : outputs) tensors.push_back(output.tensor);
  return capture_.finish(std::move(tensors));
}

// ---- inputs ------------------------------------------------------------------------------------

std::string Port::size_name(size_t axis) const {
  const bool has_name = axis < open_sizes.size() && !open_sizes[axis].empty();
  return has_name ? open_sizes[axis] : format("{}_{}", name, axis);
}

std::string Port::str() const {
  std::vector<std::string> sizes;
  for (size_t axis = 0; shape && axis < shape->size(); ++axis)
    sizes.push_back((*shape)[axis] >= 0 ? std::to_string((*shape)[axis]) : size_name(axis));
  return format("{}: {}[{}]", name, dtype ? name_of(*dtype) : "any dtype",
                shape ? join(sizes, ", ") : "any shape");
}

// ---- runs --------------------------------------------------------------------------------------

namespace {

constexpr size_t kMostPrograms = 64;

bool equals(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && equal_all(a, b).item_int() != 0;
}

void check_input(const Port& port, const Tensor& given) {
  user_check(given.defined(), ErrorKind::InvalidArgument, "the input '{}' is missing.", port.name);
  user_check(!port.dtype || given.dtype() == *port.dtype, ErrorKind::InvalidArgument,
             "the input '{}' is of dtype {}, but the model takes {}.\nhint: Cast it first.",
             port.name, name_of(given.dtype()), name_of(port.dtype.value_or(given.dtype())));
  user_check(!port.shape || static_cast<size_t>(given.rank()) == port.shape->size(),
             ErrorKind::InvalidArgument,
             "the input '{}' has {} axes, but the model takes sizes like [{}] (-1: any).",
             port.name, given.rank(), port.shape ? join(*port.shape, ", ") : "");
}

// A program that is ready to run, and what it takes of the model's inputs. Nobody changes the weights of a model, so what depends
// on them alone is computed now.
struct Entry {
  explicit Entry(Imported imported, size_t inputs)
      : executor(for_inference(imported.program)),
        constant(std::move(imported.constant)),
        results(std::move(imported.results)) {
    for (size_t place = 0; place < inputs; ++place)
      if (!constant.contains(place)) places.push_back(place);
  }
  std::vector<Tensor> taken_of(const std::vector<Tensor>& given) const {
    std::vector<Tensor> taken;
    for (const size_t place : places) taken.push_back(given[place]);
    return taken;
  }
  bool fits(const std::vector<Tensor>& given) const {
    for (const auto& [place, value] : constant)
      if (!equals(value, given[place])) return false;
    return executor.misfit(taken_of(given)).empty();
  }

  Executor executor;
  std::map<size_t, Tensor> constant;
  std::string results;
  std::vector<size_t> places;  // of the program's inputs among the model's
};
using SharedEntry = std::shared_ptr<const Entry>;

}  // namespace

struct GraphModel::Parts {
  std::vector<Port> inputs;
  std::vector<std::string> outputs;
  std::function<std::vector<std::string>()> names;
  Import import;
  Steps steps;
  Whole whole;
  Arrange arrange;
  FileKind kind = FileKind::Unknown;
  std::string path;
  std::mutex mutex;
  std::string obstacle;              // why there is no program
  std::vector<SharedEntry> entries;  // the newest last

  // Null if the model only runs step by step.
  SharedEntry entry(const std::vector<Tensor>& given) {
    user_check(given.size() == inputs.size(), ErrorKind::InvalidArgument,
               "the model takes {} inputs and is given {}.", inputs.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i) check_input(inputs[i], given[i]);
    const std::lock_guard lock(mutex);
    if (!obstacle.empty()) return nullptr;
    for (auto one = entries.rbegin(); one != entries.rend(); ++one)
      if ((*one)->fits(given)) return *one;
    refuse_nested_capture();
    try {
      return naming_file(path, [&] {
        return added(std::make_shared<const Entry>(import(given), inputs.size()), given);
      });
    } catch (const Error& error) {
      if (!steps || error.kind() != ErrorKind::Unsupported) throw;
      obstacle = error.text();
      return nullptr;
    }
  }

 private:
  SharedEntry added(SharedEntry made, const std::vector<Tensor>& given) {
    const std::string misfit = made->executor.misfit(made->taken_of(given));
    user_check(misfit.empty(), ErrorKind::InvalidArgument, "{}", misfit);
    if (entries.size() == kMostPrograms) entries.erase(entries.begin());
    entries.push_back(made);
    return made;
  }
};

GraphModel::GraphModel(std::vector<Port> inputs, std::vector<std::string> outputs, Import import,
                       Steps steps)
    : parts_(std::make_shared<Parts>()) {
  parts_->inputs = std::move(inputs);
  parts_->outputs = std::move(outputs);
  parts_->import = std::move(import);
  parts_->steps = std::move(steps);
}

GraphModel::GraphModel(std::vector<Port> inputs, std::vector<std::string> outputs, Whole whole)
    : GraphModel(std::move(inputs), std::move(outputs), Import{}) {
  parts_->whole = std::move(whole);
}

const std::vector<Port>& GraphModel::inputs() const { return parts_->inputs; }
std::vector<std::string> GraphModel::outputs() const {
  return parts_->names ? parts_->names() : parts_->outputs;
}
void GraphModel::name_outputs(std::function<std::vector<std::string>()> names) {
  parts_->names = std::move(names);
}

void GraphModel::take_more_than_tensors(Arrange arrange) { parts_->arrange = std::move(arrange); }
void GraphModel::came_from(FileKind kind, std::string path) {
  parts_->kind = kind;
  parts_->path = std::move(path);
}

std::vector<Tensor> GraphModel::run(const std::vector<Tensor>& inputs) const {
  return run_arranged(inputs).tensors;
}

Results GraphModel::run_arranged(const std::vector<Tensor>& inputs) const {
  if (parts_->whole.run) return parts_->whole.run(inputs);
  const SharedEntry entry = parts_->entry(inputs);
  if (!entry) return naming_file(parts_->path, [&] { return parts_->steps(inputs); });
  return {entry->executor.run(entry->taken_of(inputs)), entry->results};
}

Program GraphModel::program(const std::vector<Tensor>& inputs) const {
  if (parts_->whole.run) return parts_->whole.program();
  const SharedEntry entry = parts_->entry(inputs);
  user_check(entry, ErrorKind::Unsupported,
             "the model runs step by step, as no program can be made of it: {}", parts_->obstacle);
  return parts_->import(inputs).program;
}

bool GraphModel::takes_more_than_tensors() const { return parts_->arrange != nullptr; }
GraphModel GraphModel::arranged(std::string_view arguments) const {
  user_check(parts_->arrange, ErrorKind::InvalidArgument, "the model takes tensors only.");
  return parts_->arrange(arguments);
}

FileKind GraphModel::kind() const { return parts_->kind; }
const std::string& GraphModel::path() const { return parts_->path; }

void refuse_unknown(const std::vector<std::string>& unknown, std::string_view kind) {
  const std::set<std::string> names(unknown.begin(), unknown.end());
  user_check(names.empty(), ErrorKind::Unsupported,
             "the model has {} that Oar cannot import yet: {}.", kind,
             join(std::vector<std::string>(names.begin(), names.end()), ", "));
}

}  // namespace oar::interop

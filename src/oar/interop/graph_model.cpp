#include "oar/interop/graph_model.h"

#include <mutex>
#include <set>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/compiler/executor.h"

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
    try {
      if (known) return convert();
      const Capture::Scope scope(capture_);
      return convert();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Interrupted || error.text().find(what) != std::string::npos)
        throw;
      fail(error.kind(), "{} cannot be imported: {}", what, error.what());
    }
  };
  std::vector<Value> results;
  for (Tensor& t : converted()) results.push_back({std::move(t), known});
  return results;
}

Program GraphCapture::finish(const std::vector<Value>& outputs) {
  std::vector<Tensor> tensors;
  for (const Value& output : outputs) tensors.push_back(output.tensor);
  return capture_.finish(std::move(tensors));
}

// ---- runs --------------------------------------------------------------------------------------

namespace {
constexpr size_t kMostPrograms = 64;
}

struct GraphModel::Parts {
  std::vector<Port> inputs;
  std::vector<std::string> outputs;
  Import import;
  std::mutex mutex;
  std::vector<std::shared_ptr<const Executor>> executors;  // the newest last

  void check(const std::vector<Tensor>& given) const {
    user_check(given.size() == inputs.size(), ErrorKind::InvalidArgument,
               "the model takes {} inputs and is given {}.", inputs.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const Port& port = inputs[i];
      user_check(given[i].defined(), ErrorKind::InvalidArgument, "the input '{}' is missing.",
                 port.name);
      user_check(given[i].dtype() == port.dtype, ErrorKind::InvalidArgument,
                 "the input '{}' is of dtype {}, but the model takes {}.\nhint: Cast it.",
                 port.name, name_of(given[i].dtype()), name_of(port.dtype));
      user_check(static_cast<size_t>(given[i].rank()) == port.shape.size(),
                 ErrorKind::InvalidArgument,
                 "the input '{}' has {} axes, but the model takes [{}] (-1: any size).", port.name,
                 given[i].rank(), join(port.shape, ", "));
    }
  }

  std::shared_ptr<const Executor> executor(const std::vector<Tensor>& given) {
    check(given);
    const std::lock_guard lock(mutex);
    for (auto one = executors.rbegin(); one != executors.rend(); ++one)
      if ((*one)->misfit(given).empty()) return *one;
    refuse_nested_capture();
    auto made = std::make_shared<const Executor>(import(given));
    const std::string misfit = made->misfit(given);
    user_check(misfit.empty(), ErrorKind::InvalidArgument, "{}", misfit);
    if (executors.size() == kMostPrograms) executors.erase(executors.begin());
    executors.push_back(made);
    return made;
  }
};

GraphModel::GraphModel(std::vector<Port> inputs, std::vector<std::string> outputs, Import import)
    : parts_(std::make_shared<Parts>()) {
  parts_->inputs = std::move(inputs);
  parts_->outputs = std::move(outputs);
  parts_->import = std::move(import);
}

const std::vector<Port>& GraphModel::inputs() const { return parts_->inputs; }
const std::vector<std::string>& GraphModel::outputs() const { return parts_->outputs; }

std::vector<Tensor> GraphModel::run(const std::vector<Tensor>& inputs) const {
  return parts_->executor(inputs)->run(inputs);
}

Program GraphModel::program(const std::vector<Tensor>& inputs) const {
  return parts_->executor(inputs)->program();
}

void refuse_unknown(const std::vector<std::string>& unknown, std::string_view kind) {
  const std::set<std::string> names(unknown.begin(), unknown.end());
  user_check(names.empty(), ErrorKind::Unsupported,
             "the model has {} that Oar cannot import yet: {}.", kind,
             join(std::vector<std::string>(names.begin(), names.end()), ", "));
}

}  // namespace oar::interop

// Running a user's function on the call of a kernel.
#include "oar/device/device.h"
#include "oar/extension/paddle/call.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/slice.h"

namespace paddle {

void Tensor::check_content(bool holds_type) const {
  user_check(tensor_.defined(), ::oar::ErrorKind::InvalidArgument,
             "the function reads a tensor that is not there.");
  user_check(tensor_.is_dense(), ::oar::ErrorKind::Unsupported,
             "the function reads the content of a tensor that has none here: a capture, or a "
             "transform such as vmap, is under way.\nhint: Give the op SetInferShapeFn and "
             "SetInferDtypeFn; then it is captured as one call.");
  user_check(holds_type, ::oar::ErrorKind::InvalidArgument,
             "the function reads elements of another type than {}, which the tensor has.\nhint: "
             "PD_DISPATCH_FLOATING_TYPES chooses the type that fits.",
             ::oar::name_of(tensor_.dtype()));
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  const int64_t axis = 0;
  return ::oar::slice(tensor_, ::oar::Ints(&axis, 1), ::oar::Ints(&begin, 1), ::oar::Ints(&end, 1));
}

namespace detail {

void fail(const std::string& text) { ::oar::fail(::oar::ErrorKind::InvalidArgument, "{}", text); }

std::vector<int64_t> Call::sizes(const ::oar::Tensor& t) const { return Tensor(t).shape(); }

namespace {

// A call of a kernel: what the function may write are copies that lie in the outputs.
class KernelArguments : public Call {
 public:
  KernelArguments(const ::oar::KernelCall& call, const KernelPlan& plan)
      : Call({&call.arg(0), static_cast<size_t>(call.input_count)}), call_(call), plan_(plan) {}
  Tensor written(size_t i) const override {
    for (const auto& [parameter, output] : plan_.kept) {
      if (parameter != i) continue;
      const ::oar::Tensor place =
          ::oar::Tensor::share(static_cast<::oar::TensorImpl*>(call_.outputs[output]));
      ::oar::copy_into(place, value(i).as_tensor());
      return place;
    }
    // Not in the map: a copy, so that nobody else's tensor changes.
    return ::oar::assign(value(i).as_tensor());
  }

 private:
  const ::oar::KernelCall& call_;
  const KernelPlan& plan_;
};

void run(::oar::KernelCall& call, std::vector<Tensor> (*function)(const Call&),
         const KernelPlan& plan) {
  const ::oar::LayersOff bottom(::oar::kDispatchMask);  // a kernel is the end of a call
  const std::vector<Tensor> made = function(KernelArguments(call, plan));
  const auto wanted = static_cast<size_t>(call.output_count) - plan.kept.size();
  user_check(made.size() == wanted, ::oar::ErrorKind::InvalidArgument,
             "the kernel function returned {} tensors, where {} are to be made.", made.size(),
             wanted);
  size_t next = 0;
  for (size_t k = 0; k < static_cast<size_t>(call.output_count); ++k) {
    bool kept = false;
    for (const auto& [parameter, output] : plan.kept) kept |= output == k;
    if (kept) continue;
    const ::oar::Tensor place =
        ::oar::Tensor::share(static_cast<::oar::TensorImpl*>(call.outputs[k]));
    const ::oar::Tensor& result = made[next++].native();
    user_check(result.defined(), ::oar::ErrorKind::InvalidArgument,
               "result {} of the kernel function is an empty Tensor.", k);
    user_check(result.dtype() == place.dtype() && same(result.shape(), place.shape()),
               ::oar::ErrorKind::InvalidArgument,
               "the kernel function made {} as result {}, but inference says {}.\nhint: "
               "SetInferShapeFn and SetInferDtypeFn must agree with the kernel.",
               result.describe(), k, place.describe());
    ::oar::copy_into(place, result);
  }
}

}  // namespace

int32_t run_kernel(oar_kernel_call* call, std::vector<Tensor> (*function)(const Call&),
                   const KernelPlan& plan) {
  try {
    run(*static_cast<::oar::KernelCall*>(call), function, plan);
    return OAR_OK;
  } catch (...) {
    return ::oar::report_exception();
  }
}

}  // namespace detail
}  // namespace paddle

#include "oar/ops/core/run.h"

#include <cstdio>

#include "oar/base/flags.h"
#include "oar/device/device.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/core/watch.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/byte_count.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

KernelCall call_on(Args args, const SmallVector<oar_tensor*, 4>& outputs, Device device) {
  KernelCall call;
  call.inputs = args.data();
  call.outputs = outputs.data();
  call.input_count = static_cast<int32_t>(args.size());
  call.output_count = static_cast<int32_t>(outputs.size());
  call.stream = device.is_cpu() ? nullptr : current_stream(device);
  call.api = &host_api();
  call.context = nullptr;
  call.plan = nullptr;
  call.unchanged = 0;
  call.device_index = device.index;
  return call;
}

void run_untimed(const oar_kernel& kernel, KernelCall& call) {
  if (!kernel.prepare) [[likely]]
    return check_status(kernel.run(&call), {});
  const PlanPtr plan = prepare_plan(kernel, call);
  call.plan = plan.get();
  check_status(kernel.run(&call), {});
}

void run_accepted(const Op& op, const oar_kernel& kernel, KernelCall& call) {
  if (!profiling()) [[likely]]
    return run_untimed(kernel, call);
  const ProfiledKernel timed(op, kernel);
  run_untimed(kernel, call);
}

// Builds the ABI's call around arguments and outputs and tries the candidates in order. False where
// all of them declined; `reasons` then says why.
bool run_kernel(const Op& op, Args args, Outputs& outputs, Device device, std::string& reasons) {
  SmallVector<oar_tensor*, 4> raw;
  for (Tensor& t : outputs) raw.push_back(t.impl());
  KernelCall call = call_on(args, raw, device);
  const bool trace = tracing_dispatch();
  for (const oar_kernel* kernel : op.kernels(device.type)) {
    call.context = kernel->context;
    const char* declined = kernel->accepts ? kernel->accepts(&call) : nullptr;
    if (declined) {
      if (trace)
        std::fprintf(stderr, "dispatch: %s: %s declined: %s\n", op.name().c_str(), kernel->name,
                     declined);
      continue;
    }
    if (t_launch_queue && t_launch_queue->take(op, *kernel, args, outputs, device)) return true;
    if (const QueueHooks* hooks = queue_hooks()) [[unlikely]]
      hooks->before_launch(op, args);
    if (trace) std::fprintf(stderr, "dispatch: %s: %s\n", op.name().c_str(), kernel->name);
    run_accepted(op, *kernel, call);
    return true;
  }
  if (trace && op.def().decompose)
    std::fprintf(stderr, "dispatch: %s: decomposed\n", op.name().c_str());
  // Asked again: a call that the next candidate takes should not pay for a text.
  for (const oar_kernel* kernel : op.kernels(device.type)) {
    call.context = kernel->context;
    if (const char* declined = kernel->accepts ? kernel->accepts(&call) : nullptr)
      reasons += format("{} ({}) ", kernel->name, declined);
  }
  return false;
}

[[noreturn]] void refuse_call(const std::string& reasons) {
  fail(ErrorKind::Unsupported,
       "no kernel accepts this call: {}.\nhint: Cast the operands to float32, or "
       "see OAR_TRACE=dispatch.",
       reasons);
}

Outputs allocate(const Metas& metas, Device device) {
  Outputs outputs;
  for (const TensorMeta& m : metas)
    outputs.push_back(m.data_dependent ? Tensor::meta(m.shape, m.dtype, device)
                                       : Tensor::empty(m.shape, m.dtype, device));
  return outputs;
}

Tensor view_on(const Tensor& base, const ViewSpec& spec) {
  char* data = static_cast<char*>(base->data) + byte_offset(spec.offset, base.dtype());
  Tensor view = Tensor::view_of(base->storage, spec.shape,
                                {spec.strides.data(), spec.strides.size()}, data, base.dtype());
  if (!(t_layers.off & kRecording) && is_differentiable(base.dtype()))
    view->view_base = base->view_base ? base->view_base : Intrusive<TensorImpl>(base.impl());
  return view;
}

Outputs run_view(const Op& op, Args args) {
  Outputs outputs;
  const Tensor& base = args[0].as_tensor();
  if (std::optional<ViewSpec> spec = op.def().view(args)) {
    outputs.push_back(view_on(base, *spec));
    return outputs;
  }
  // The layout does not allow a view of the base: copy it first.
  SmallVector<Value, 8> copied(args.begin(), args.end());
  const Tensor compact = assign(base);
  copied[0] = Value(compact);
  std::optional<ViewSpec> spec = op.def().view({copied.data(), copied.size()});
  internal_check(spec.has_value(), "{} has no view of a contiguous tensor", op.name());
  outputs.push_back(view_on(compact, *spec));
  return outputs;
}

void check_writable(const Tensor& x) {
  user_check(!x->storage->is_readonly(), ErrorKind::InvalidArgument,
             "the tensor's memory is read-only.\nhint: Write to a copy: x = x.clone().");
  if (x->numel == 0) return;
  for (int i = 0; i < x.rank(); ++i)
    user_check(
        x->strides[i] != 0 || x->shape[i] <= 1, ErrorKind::InvalidArgument,
        "a broadcast tensor of shape {} shares memory between elements and cannot be written "
        "in place.\nhint: Write to a copy: x = x.clone().",
        to_string(x.dims()));
}

// `name_`: the kernel of `name` with the first operand as its output.
Outputs run_derived_inplace(const Op& op, Args args, Device device) {
  const Op& functional = *op.inplace_of();
  const Tensor& x = args[0].as_tensor();
  check_writable(x);
  // The written tensor has kept its dtype so far. If the others have another one, or the op turns
  // integers into floats, the result is computed separately and cast.
  Frame frame;
  const bool converted = prepare(functional, args, frame);
  if (converted) args = frame.args();
  const Metas metas = infer_results(functional, args);
  check_fits_in_place(functional, metas[0].dtype, metas[0].shape, x);
  Outputs outputs;
  outputs.push_back(x);
  bool direct = !converted && metas[0].dtype == x.dtype() && !op.kernels(device.type).empty();
  for_each_tensor(args.subspan(1), [&](const Tensor& t) { direct &= !overlaps_partially(x, t); });
  direct &=
      functional.has(Trait::Elementwise) || (functional.has(Trait::Rowwise) && x.is_contiguous());
  std::string reasons;
  if (!direct || !run_kernel(op, args, outputs, device, reasons)) {
    const Outputs fresh = run_op(functional, args);
    copy_into(x, fresh[0].dtype() == x.dtype() ? fresh[0] : cast(fresh[0], x.dtype()));
    return outputs;
  }
  x->storage->bump_version();
  return outputs;
}

#if defined(OAR_LEAN)
constexpr const char* kHintOnCpu =
    "`make quickstart` leaves out the kernels of families that few models use. Run `make build`.";
#else
constexpr const char* kHintOnCpu = "Give the op a kernel or a decomposition.";
#endif

Outputs decomposed(const Op& op, Args args, Device device) {
  if (!op.def().decompose) [[unlikely]] {
    const char* why =
        devices::type(device.type).api().supports(op.name().c_str(), op.schema().version);
    fail(ErrorKind::Unsupported, "{} has no kernel for this op{}{}.\nhint: {}",
         devices::to_string(device), why ? ": " : "", why ? why : "",
         device.is_cpu() ? kHintOnCpu : "Move the operands to the CPU with x.cpu().");
  }
  const devices::Scope scope(device);
  return op.def().decompose(args);
}

// A write behaves as if its source had been copied first, so operands that overlap a written tensor
// are copied. Returns whether there are any.
bool copy_overlapping(const Op& op, Args args, Frame& apart) {
  const auto is_written = [&](size_t i) { return op.schema().parameters[i].written; };
  const auto overlaps = [&](const Tensor& read) {
    for (size_t i = 0; i < args.size(); ++i)
      if (is_written(i) && args[i].is_tensor() && overlaps_partially(args[i].as_tensor(), read))
        return true;
    return false;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_written(i) || !args[i].is_tensor() || !overlaps(args[i].as_tensor())) continue;
    if (apart.size() == 0) apart = Frame(args);
    apart.set_tensor(i, assign(args[i].as_tensor()));
  }
  return apart.size() != 0;
}

// Ops that write arguments by their own schema: results with (a!) are those arguments.
Outputs run_written(const Op& op, Args args, Device device) {
  Outputs outputs;
  for (const Result& result : op.schema().results) {
    for (size_t i = 0; i < args.size(); ++i) {
      const Parameter& p = op.schema().parameters[i];
      if (!p.written || p.alias != result.alias) continue;
      if (p.list)
        for (const Tensor& t : args[i].as_tensors()) outputs.push_back(t);
      else
        outputs.push_back(args[i].as_tensor());
    }
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema().parameters[i].written) for_each_tensor(args.subspan(i, 1), check_writable);
  if (op.def().infer) infer_results(op, args);  // checks the arguments
  Frame apart;
  if (copy_overlapping(op, args, apart)) args = apart.args();
  std::string reasons;
  if (!run_kernel(op, args, outputs, device, reasons)) {
    if (!op.def().decompose) refuse_call(reasons);
    decomposed(op, args, device);
    return outputs;  // the ops of its decomposition have counted the versions
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema().parameters[i].written)
      for_each_tensor(args.subspan(i, 1), [](const Tensor& t) { t->storage->bump_version(); });
  return outputs;
}

void check_finite(const Op& op, const Outputs& outputs);

}  // namespace

void check_fits_in_place(const Op& functional, DType dtype, const Shape& shape, const Tensor& x) {
  const auto rank = [](DType t) {
    return is_complex(t) ? 3 : is_floating(t) ? 2 : is_integral(t) ? 1 : 0;
  };
  user_check(rank(dtype) <= rank(x.dtype()), ErrorKind::InvalidType,
             "the result has dtype {} and cannot be written to a tensor of dtype {}.\nhint: Use {} "
             "without the underscore.",
             name_of(dtype), name_of(x.dtype()), functional.name());
  user_check(shape == x.shape(), ErrorKind::InvalidArgument,
             "the result has shape {} and cannot be written to a tensor of shape {}."
             "\nhint: Use {} without the underscore.",
             shape.str(), to_string(x.dims()), functional.name());
}

void launch(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
            Device device) {
  const OpScope scope(op.name().c_str());
  SmallVector<oar_tensor*, 4> raw;
  for (const Tensor& t : outputs) raw.push_back(t.impl());
  KernelCall call = call_on(args, raw, device);
  call.context = kernel.context;
  run_accepted(op, kernel, call);
}

std::optional<Device> moved_to(const Op& op, Args args) {
  const int at = op.is_built_in() ? op.schema().index_of("device") : -1;
  if (at < 0) return std::nullopt;
  return devices::parse(args[static_cast<size_t>(at)].as_string());
}

Device device_of(const Op& op, Args args) {
  Device device = devices::current();
  const Tensor* first = nullptr;
  bool mixed = false;
  for_each_tensor(args, [&](const Tensor& t) {
    if (!first) {
      first = &t;
      device = t.device();
    } else if (t.device() != device) {
      // A 0-d CPU scalar is accepted with tensors of any device.
      if (t.device().is_cpu() && t.rank() == 0) return;
      if (device.is_cpu() && first->rank() == 0) {
        device = t.device();
        return;
      }
      mixed = true;
    }
  });
  user_check(!mixed, ErrorKind::InvalidArgument,
             "the operands of {} are on different devices.\nhint: Move them together with "
             "x.to(device).",
             op.name());
  return device;
}

namespace {
// For the operands that share one: a kernel reads all of them element by element.
void check_one_dtype(const Op& op, Args args) {
  const Tensor* first = nullptr;
  size_t first_at = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor() || !(op.promotes() >> i & 1)) continue;
    const Tensor& t = args[i].as_tensor();
    if (first)
      user_check(
          t.dtype() == first->dtype(), ErrorKind::InvalidType,
          "{} has dtype {} and {} has dtype {}; they must be equal.\nhint: Cast one of them.",
          op.schema().parameters[first_at].name, name_of(first->dtype()),
          op.schema().parameters[i].name, name_of(t.dtype()));
    else
      first_at = i;
    first = &t;
  }
}
}  // namespace

void check_dtypes(const Op& op, Args args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor() || !(op.promotes() >> i & 1)) continue;
    const DType dtype = args[i].as_tensor().dtype();
    user_check(op.accepts(dtype) || !is_stored(dtype), ErrorKind::InvalidType,
               "{} has dtype {}, which is for storage: {} does not compute in it.\nhint: Cast it "
               "first, for example {}.astype('int64').",
               op.schema().parameters[i].name, name_of(dtype), op.name(),
               op.schema().parameters[i].name);
    user_check(
        op.accepts(dtype), ErrorKind::InvalidType,
        "{} has dtype {}; {} takes {} types.\nhint: Cast it first, for example {}.astype('{}').",
        op.schema().parameters[i].name, name_of(dtype), op.name(), op.def().dtypes,
        op.schema().parameters[i].name,
        op.accepts(DType::Float32) ? "float32"
        : op.accepts(DType::Int64) ? "int64"
                                   : "bool");
    if (!op.has(Trait::Promote)) break;  // without promotion the list is for the first operand
  }
  if (op.has(Trait::Elementwise)) check_one_dtype(op, args);
}

bool shares_elements(const Tensor& a, const Tensor& b) {
  if (!a.is_dense() || !b.is_dense() || a->storage != b->storage) return false;
  if (a->numel == 0 || b->numel == 0) return false;
  const auto extent = [](const Tensor& t) {
    int64_t low = 0, high = 1;
    for (int i = 0; i < t.rank(); ++i) {
      const int64_t reach = (t->shape[i] - 1) * t->strides[i];
      (reach < 0 ? low : high) += reach;
    }
    auto* data = static_cast<char*>(t->data);
    return std::pair{data + byte_offset(low, t.dtype()), data + byte_count(high, t.dtype())};
  };
  const auto [a_low, a_high] = extent(a);
  const auto [b_low, b_high] = extent(b);
  return a_low < b_high && b_low < a_high;
}

bool overlaps_partially(const Tensor& written, const Tensor& read) {
  if (!written.is_dense() || !read.is_dense() || written->storage != read->storage) return false;
  const bool same_elements =
      written->data == read->data && written.dtype() == read.dtype() &&
      written.shape() == read.shape() &&
      std::equal(written.strides().begin(), written.strides().end(), read.strides().begin());
  return !same_elements && shares_elements(written, read);
}

Metas infer_results(const Op& op, Args args) {
  check_dtypes(op, args);
  const Op& rules = op.inplace_of() ? *op.inplace_of() : op;
  if (rules.def().infer) return rules.def().infer(args);
  // No rule of its own: the decomposition, on tensors without content.
  internal_check(static_cast<bool>(rules.def().decompose), "{} has nothing to infer by", op.name());
  Frame meta(args);
  for (size_t i = 0; i < args.size(); ++i) {
    const auto bare = [](const Tensor& t) {
      return t.defined() ? Tensor::meta(t.dims(), t.dtype(), t.device()) : Tensor();
    };
    if (args[i].is_tensor()) meta.set_tensor(i, bare(args[i].as_tensor()));
    if (args[i].is_tensors()) {
      std::vector<Tensor> list;
      for (const Tensor& t : args[i].as_tensors()) list.push_back(bare(t));
      meta.set_tensors(i, std::move(list));
    }
  }
  Metas metas;
  for (const Tensor& t : rules.def().decompose(meta.args()))
    metas.push_back({t.dtype(), t.shape(), false});
  return metas;
}

void check_arguments(const Op& op, Args args) {
  const OpScope scope(op.name().c_str());
  const Op& rules = op.inplace_of() ? *op.inplace_of() : op;
  rules.def().infer ? void(infer_results(op, args)) : check_dtypes(op, args);
}

Metas infer_types(const Op& op, Args args) {
  Metas metas = infer_results(op, args);
  for (const TensorMeta& m : metas) {
    if (m.data_dependent || !m.shape.is_known()) continue;
    // A view has no memory of its own, however often it repeats an element.
    bytes_of(m.shape, op.has(Trait::View) ? DType::Bool : m.dtype);
  }
  return metas;
}

namespace {
// Is there a tensor without content, or a size without a number? Then the call is about shapes. A
// dense tensor can be among them: a literal that is broadcast to an operand's shape.
bool any_meta(Args args) {
  bool found = false;
  for (const Value& v : args) {
    if (v.is_tensor())
      found |= v.as_tensor().kind() == Kind::Meta;
    else if (v.is_tensors())
      for_each_tensor(Args(&v, 1), [&](const Tensor& t) { found |= t.kind() == Kind::Meta; });
    else if (v.tag == OAR_TAG_INTS)
      for (Dim d : v.as_dim_list()) found |= d.is_symbolic();
  }
  return found;
}

// Inference only: for shape queries and `infer` of composites.
Outputs run_meta(const Op& op, Args args) {
  Outputs outputs;
  Device device = device_of(op, args);
  if (op.def().view) {
    internal_check(static_cast<bool>(op.def().infer), "the view {} needs an inference rule",
                   op.name());
  }
  for (const TensorMeta& m : infer_types(op, args))
    outputs.push_back(Tensor::meta(m.shape, m.dtype, device));
  return outputs;
}
}  // namespace

Outputs run_op(const Op& op, Args args) {
  OpScope scope(op.name().c_str());
  if (any_meta(args)) [[unlikely]]
    return run_meta(op, args);
  if (op.def().view) {
    check_dtypes(op, args);
    return run_view(op, args);
  }
  const Device device = device_of(op, args);
  if (op.inplace_of()) return run_derived_inplace(op, args, device);
  if (op.has(Trait::Inplace)) return run_written(op, args, device);
  if (op.kernels(device.type).empty()) {
    if (op.def().infer)
      infer_types(op, args);  // checks the arguments, as for an op with a kernel
    else
      check_dtypes(op, args);
    return decomposed(op, args, device);
  }
  Outputs outputs = allocate(infer_results(op, args), device);
  std::string reasons;
  if (!run_kernel(op, args, outputs, device, reasons)) {
    if (!op.def().decompose) refuse_call(reasons);
    return decomposed(op, args, device);
  }
  static const FlagHandle<bool> check_nan("check_nan_inf");
  if (check_nan.get() && !watching()) [[unlikely]]  // a watcher decides itself
    check_finite(op, outputs);
  return outputs;
}

namespace {
void check_finite(const Op& op, const Outputs& outputs) {
  for (const Tensor& t : outputs) {
    if (!is_differentiable(t.dtype()) || !t.device().is_cpu()) continue;
    for (const std::complex<double>& v : t.to_vector<std::complex<double>>())
      user_check(
          std::isfinite(v.real()) && std::isfinite(v.imag()), ErrorKind::Runtime,
          "the result of {} ({}) holds NaN or infinity{}{}.\nhint: The flag check_nan_inf turns "
          "this check on.",
          op.name(), t.describe(), current_layer() ? ", in the layer " : "",
          to_string(current_layer()));
  }
}
}  // namespace

}  // namespace oar

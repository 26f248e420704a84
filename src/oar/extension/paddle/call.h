// Passes a call to a user's function: each parameter is read by its C++ type.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "oar/base/api.h"
#include "oar/device/abi.h"
#include "oar/extension/paddle/tensor.h"
#include "oar/tensor/value.h"

namespace OAR_API paddle {
namespace detail {

// The arguments of a call, read one by one. A kernel reads tensors; inference reads their sizes or
// dtypes instead.
class Call {
 public:
  explicit Call(::oar::Args args) : args_(args) {}
  virtual ~Call() = default;
  const ::oar::Value& value(size_t i) const { return args_[i]; }
  virtual std::vector<int64_t> sizes(const ::oar::Tensor& t) const;
  // The argument for a parameter that the function may write.
  virtual Tensor written(size_t i) const { return Tensor::compact(args_[i].as_tensor()); }

 private:
  ::oar::Args args_;
};

// The parameter's type as a schema writes it; "" if a schema has none.
template <class T>
struct Read;

#define OAR_READ(cpp, schema, expression)         \
  template <>                                     \
  struct Read<cpp> {                              \
    static constexpr const char* kType = schema;  \
    static cpp from(const Call& call, size_t i) { \
      const ::oar::Value& v = call.value(i);      \
      return expression;                          \
    }                                             \
  }
OAR_READ(bool, "bool", v.as_bool());
OAR_READ(int, "int", static_cast<int>(v.as_int()));
OAR_READ(int64_t, "int", v.as_int());
OAR_READ(float, "float", static_cast<float>(v.as_double()));
OAR_READ(double, "float", v.as_double());
OAR_READ(std::string, "str", std::string(v.as_string()));
OAR_READ(std::vector<int>, "int[]", std::vector<int>(v.as_ints().begin(), v.as_ints().end()));
OAR_READ(std::vector<float>, "float[]",
         std::vector<float>(v.as_doubles().begin(), v.as_doubles().end()));
OAR_READ(std::vector<double>, "float[]",
         std::vector<double>(v.as_doubles().begin(), v.as_doubles().end()));
OAR_READ(Tensor, "Tensor", v.is_tensor() ? Tensor::compact(v.as_tensor()) : Tensor());
// A list of numbers, or the sizes of a tensor if the argument is one.
OAR_READ(std::vector<int64_t>, "int[]",
         v.is_tensor() ? call.sizes(v.as_tensor())
                       : std::vector<int64_t>(v.as_ints().begin(), v.as_ints().end()));
OAR_READ(DataType, "Tensor", static_cast<DataType>(v.as_tensor().dtype()));
#undef OAR_READ

template <class T, class F>
std::vector<T> of_each(const ::oar::Value& v, F&& read) {
  std::vector<T> list;
  for (const ::oar::Tensor& t : v.as_tensors()) list.push_back(read(t));
  return list;
}
template <>
struct Read<std::vector<Tensor>> {
  static constexpr const char* kType = "Tensor[]";
  static std::vector<Tensor> from(const Call& call, size_t i) {
    return of_each<Tensor>(call.value(i), Tensor::compact);
  }
};
template <>
struct Read<std::vector<std::vector<int64_t>>> {
  static constexpr const char* kType = "Tensor[]";
  static std::vector<std::vector<int64_t>> from(const Call& call, size_t i) {
    return of_each<std::vector<int64_t>>(call.value(i),
                                         [&](const ::oar::Tensor& t) { return call.sizes(t); });
  }
};
template <>
struct Read<std::vector<DataType>> {
  static constexpr const char* kType = "Tensor[]";
  static std::vector<DataType> from(const Call& call, size_t i) {
    return of_each<DataType>(
        call.value(i), [](const ::oar::Tensor& t) { return static_cast<DataType>(t.dtype()); });
  }
};
template <class T>
struct Read<optional<T>> {
  static constexpr const char* kType = "Tensor?";
  static optional<T> from(const Call& call, size_t i) {
    return call.value(i).is_none() ? optional<T>() : optional<T>(Read<T>::from(call, i));
  }
};

template <class P>
inline constexpr bool is_written =
    std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>> &&
    std::is_same_v<std::remove_cvref_t<P>, Tensor>;

template <class P>
std::remove_cvref_t<P> read(const Call& call, size_t i) {
  if constexpr (is_written<P>)
    return call.written(i);
  else
    return Read<std::remove_cvref_t<P>>::from(call, i);
}

// A function of the user, to be called with the arguments of a call.
struct Function {
  std::vector<std::string> types;  // of its parameters
  std::vector<size_t> written;     // parameters that it may write
};
template <class R>
struct Callable : Function {
  R (*call)(const Call& call) = nullptr;
  explicit operator bool() const { return call != nullptr; }
};

template <auto kFunction, class Signature = decltype(kFunction)>
struct Adapted;
template <auto kFunction, class R, class... P>
struct Adapted<kFunction, R (*)(P...)> {
  using Result = std::conditional_t<std::is_void_v<R>, std::vector<Tensor>, R>;
  static Result call(const Call& call) { return with_index(call, std::index_sequence_for<P...>{}); }
  static Callable<Result> callable() {
    Callable<Result> made;
    made.types = {Read<std::remove_cvref_t<P>>::kType...};
    size_t i = 0;
    ((is_written<P> ? made.written.push_back(i++) : static_cast<void>(i++)), ...);
    made.call = call;
    return made;
  }

 private:
  template <size_t... I>
  static Result with_index(const Call& call, std::index_sequence<I...>) {
    // Braces read the arguments in order.
    std::tuple<std::remove_cvref_t<P>...> arguments{read<P>(call, I)...};
    if constexpr (std::is_void_v<R>) {
      kFunction(std::get<I>(arguments)...);
      return {};
    } else {
      return kFunction(std::get<I>(arguments)...);
    }
  }
};

// A kernel of Oar's device interface that calls the user's function. Outputs that are written
// parameters are listed in `kept`, the others are what the function returns.
struct KernelPlan {
  std::vector<std::pair<size_t, size_t>> kept;  // (parameter, output)
};
int32_t run_kernel(oar_kernel_call* call, std::vector<Tensor> (*function)(const Call&),
                   const KernelPlan& plan);

struct Kernel : Callable<std::vector<Tensor>> {
  int32_t (*entry)(oar_kernel_call* call) = nullptr;
  KernelPlan* plan = nullptr;
};
template <auto kFunction>
struct KernelOf {
  // One function may serve several ops, but only with one plan; registration checks this.
  static inline KernelPlan plan;
  static int32_t entry(oar_kernel_call* call) {
    return run_kernel(call, Adapted<kFunction>::call, plan);
  }
  static Kernel kernel() {
    Kernel made;
    static_cast<Callable<std::vector<Tensor>>&>(made) = Adapted<kFunction>::callable();
    made.entry = entry;
    made.plan = &plan;
    return made;
  }
};

using Shapes = std::vector<std::vector<int64_t>>;
using DataTypes = std::vector<DataType>;

}  // namespace detail
}  // namespace paddle

#define PD_KERNEL(...) (::paddle::detail::KernelOf<&__VA_ARGS__>::kernel())
#define PD_INFER_SHAPE(...) (::paddle::detail::Adapted<&__VA_ARGS__>::callable())
#define PD_INFER_DTYPE(...) (::paddle::detail::Adapted<&__VA_ARGS__>::callable())

// What a converter of an op of PyTorch sees, and the tables of converters. A row of a table has the op's signature; arguments are
// asked for by its names.
//
//   Value linear_of(const Call& c) { return linear(c.tensor("input"), transpose(…), c.maybe("bias")); }
//   constexpr Converter kConverters[] = {{"linear(input, weight, bias=None)", linear_of}, …};
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/pytorch/value.h"

namespace oar::pytorch {

// An argument as a program gives it: by its place if it has no name.
struct Argument {
  std::string name;
  Value value;
};

class Call;

struct Converter {
  // Names of parameters, with defaults; those after "*" are given by name. "other:Tensor" fits tensors alone, ":int" integers and real numbers,
  // ":number" flags, too, ":bool" flags, ":str" texts, ":list" lists and tuples, ":dict" dictionaries.
  std::string_view signature;
  Value (*convert)(const Call&);
  enum Kind : uint8_t {
    Pure,
    Writes,  // it writes its first argument
    Random,
    Plain,   // it moves values about and computes no tensor
    Counts,  // what its tensors hold decides how many results it has
  } kind = Pure;
};

struct Parameter {
  std::string name, type;
  std::optional<Value> otherwise;
  bool by_name = false;  // it has no place
};

struct Signature {
  const Converter* converter;
  std::vector<Parameter> parameters;
};

// The rows of an op, by its name without the overload; none if no table has it.
std::span<const Signature> signatures_of(std::string_view name);
// Is there a converter for it, or for the function that it applies in place?
bool can_convert(std::string_view name);

// A place for each parameter, if they fit.
std::optional<std::vector<Value>> bound(const Signature& signature,
                                        const std::vector<Argument>& arguments);

class Call {
 public:
  Call(std::string name, std::string op, const Signature& signature, std::vector<Value> values,
       Heap& heap)
      : name(std::move(name)),
        op(std::move(op)),
        signature_(signature),
        values_(std::move(values)),
        heap_(heap) {}

  const std::string name;  // of the node, for errors
  const std::string op;    // as the tables have it

  const Value& value(std::string_view parameter) const;
  bool has(std::string_view parameter) const { return !value(parameter).is_none(); }
  // Where the rows of an op have different parameters.
  bool takes(std::string_view parameter) const;
  const Tensor& tensor(std::string_view parameter) const;
  // An undefined tensor if it is left out.
  Tensor maybe(std::string_view parameter) const;
  std::vector<Tensor> tensors(std::string_view parameter) const;
  // Of a list or a dictionary that is read or changed.
  Box& box(std::string_view parameter) const;
  // The same, to be changed: an error if it is a part of the module, which runs step by step then.
  Box& changed(std::string_view parameter) const;
  Heap& heap() const { return heap_; }
  int64_t integer(std::string_view parameter) const;
  double number(std::string_view parameter) const;
  bool flag(std::string_view parameter) const;
  const std::string& text(std::string_view parameter) const;
  // One number is a list of one; nothing is an empty list.
  std::vector<int64_t> list(std::string_view parameter) const;
  std::vector<double> numbers(std::string_view parameter) const;
  // A list with one entry per axis; one entry stands for all.
  std::vector<int64_t> list(std::string_view parameter, size_t count) const;
  std::optional<DType> dtype(std::string_view parameter) const;
  // An axis, from 0 on.
  int64_t axis(std::string_view parameter, int64_t rank) const;
  // A tensor, or a number as a tensor that promotes as numbers do.
  Tensor operand(std::string_view parameter) const;

  Value listed(const std::vector<Tensor>& tensors) const;
  Value tuple(const std::vector<Tensor>& tensors) const;
  Value tuple_of(std::vector<Value> values) const;
  Value list_of(std::vector<Value> values) const;
  Value dict_of(std::vector<Value> keys, std::vector<Value> values) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const Signature& signature_;
  std::vector<Value> values_;
  Heap& heap_;
};

// PyTorch's numbers of dtypes in programs; those in archives differ.
DType dtype_of(int64_t number);
int64_t number_of(DType dtype);

// Both as PyTorch promotes them: tensors without axes and numbers only decide the kind of number.
std::pair<Tensor, Tensor> promoted(const Tensor& x, const Tensor& y);

std::span<const Converter> activation_converters();
std::span<const Converter> elementwise_converters();
std::span<const Converter> reduction_converters();
std::span<const Converter> product_converters();
std::span<const Converter> network_converters();
std::span<const Converter> resize_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> creation_converters();
std::span<const Converter> selection_converters();
std::span<const Converter> recurrent_converters();
std::span<const Converter> loss_converters();
std::span<const Converter> scalar_converters();
std::span<const Converter> container_converters();
std::span<const Converter> text_converters();
std::span<const Converter> script_converters();

}  // namespace oar::pytorch

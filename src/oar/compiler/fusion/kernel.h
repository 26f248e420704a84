// What a generated kernel computes: the form between fusion and code generation. It names no op and no size, so that one kernel
// serves programs and batches of all kinds; its text is the key of the cache.
//
// A kernel goes over rows of `count` elements. A step belongs to a row (computed once per row) or to an element. A fold joins
// the elements of a row to one number; what depends on it is computed in a later loop over the same row. An output that joins is a
// total over many rows: the kernel adds to what is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/scalar.h"
#include "oar/tensor/dtype.h"

namespace OAR_API oar {
namespace fusion {

enum class StepKind : uint8_t {
  Load,    // an element of the operand `port`, widened
  Number,  // `number` or `integer`
  Count,   // the elements of a row, as a float
  Apply,   // `fn` on the operands, all of one type but for the condition of a choice
  Cast,    // to `type`
  Round,   // to the precision of `rounded`, a 16-bit float; the type stays Float32
  Fold,    // `fn` (Add, Multiply, Min, Max) over the row
};

// Types of steps: Bool, integers, Float32, Float64.
struct Step {
  StepKind kind = StepKind::Number;
  ScalarFn fn = ScalarFn::Number;
  DType type = DType::Float32;
  DType rounded = DType::Float32;
  uint16_t operands[3] = {0, 0, 0};
  uint16_t port = 0;
  bool loose =
      false;  // part of a decomposition, whose own kernel rounds in another way: a quotient may be a product
  bool of_row = true;  // one value for all elements of a row
  uint8_t loop = 0;    // the first loop over the row that can compute it
  double number = 0;
  int64_t integer = 0;
};

// How an operand or a result lies along a row.
enum class Lie : uint8_t {
  Dense,    // elements side by side
  Strided,  // at a distance, which may be negative
  Single,   // one element for all of the row
};

struct Port {
  DType dtype = DType::Float32;
  Lie lie = Lie::Dense;
  ScalarFn joins =
      ScalarFn::Number;  // of an output: how elements join what is there; Number: they replace it
  bool is_total() const { return joins != ScalarFn::Number; }
};

struct Kernel {
  std::vector<Port> inputs, outputs;
  std::vector<Step> steps;        // operands come before their readers
  std::vector<uint16_t> results;  // the step that each output gets
  // Of a step per element that is computed anew in each loop that needs it: as cheap as reading it.
  static constexpr double kCheap = 6;

  bool folds() const;
  // Sets `of_row` and `loop` of all steps.
  void place_steps();
  std::string text() const;
};

int arity_of(const Step& step);
// Is there a fast form that is wrong for some arguments? A loop that met one runs once more.
bool has_hard_arguments(const Step& step);

// Native code of a kernel. Ports are the first elements of the inputs, then of the outputs; `across` the bytes from row to row,
// `along` those from element to element, of each. `room` is for this call alone: 8 * count bytes per step that a later loop reads.
using Code = void (*)(char* const* ports, const int64_t* across, const int64_t* along, int64_t rows,
                      int64_t count, char* room);
// By step: does the first loop that computes it keep it in `room` for the others?
std::vector<bool> kept_steps(const Kernel& kernel);
// By step and loop: which loops compute it, or read what was kept.
std::vector<std::vector<bool>> computed_in(const Kernel& kernel, const std::vector<bool>& kept);

}  // namespace fusion
}  // namespace oar

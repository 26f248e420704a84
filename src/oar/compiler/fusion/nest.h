// The loops around a kernel's rows, for a call at known sizes and strides.
#pragma once

#include "oar/compiler/fusion/loop.h"

namespace oar::fusion {

// Nested loops over all ports; the last axis is a row's. Strides are in bytes.
struct Nest {
  struct Axis {
    int64_t size = 1;
    std::vector<int64_t> strides;  // by port: inputs, then outputs
  };
  std::vector<Axis> outer;  // the last of them are the rows of one call of the code
  Axis row;
  Kernel kernel;                 // with the lies of this call
  std::vector<int64_t> offsets;  // of the inputs, in bytes
  std::vector<TotalOutput> totals;
  std::vector<int64_t> total_sizes;
  bool whole_rows = false;  // a row is one piece, as something is computed from all of it
  size_t kept = 0;          // steps that need room

  // None if the strides do not allow it.
  static std::optional<Nest> of(const FusedLoop& loop, TensorList inputs);
  int64_t rows() const;
  // Does an input lie across the rows, as one behind a transpose? Its cache lines would be read again and again.
  bool jumps() const;
  using Ports = SmallVector<char*, 12>;
  void run(Code code, Ports ports) const;

 private:
  void run_rows(Code code, const Ports& ports, int64_t begin, int64_t end) const;
  void run_elements(Code code, const Ports& ports, int64_t begin, int64_t end) const;
  void run_part(Code code, const Ports& ports, int64_t row, int64_t count, int64_t from,
                int64_t length, char* room) const;
  bool is_streamed() const;
  void run_streamed(Code code, const Ports& ports, int64_t begin, int64_t end) const;
  void run_units(Code code, const Ports& ports, int64_t begin, int64_t end) const;
  void run_totals(Code code, const Ports& ports) const;
};

}  // namespace oar::fusion

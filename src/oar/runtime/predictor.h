// A model that is fed and read by names. Clones share program and weights; each belongs to one thread at a time.
//
//   Predictor predictor(Model::load("digits.oar"));
//   predictor.set_input("image", DType::Float32, Shape{1, 1, 8, 8}, pixels);   // not copied
//   predictor.run();
//   const Tensor digit = predictor.output("digit");
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/runtime/model.h"

namespace OAR_RUNTIME_API oar {

class Predictor {
 public:
  explicit Predictor(Model model);

  const Model& model() const { return model_; }
  // Without inputs and outputs.
  Predictor clone() const { return Predictor(model_); }

  void set_input(std::string_view name, Tensor content);
  // Reads the caller's memory, which stays valid and unchanged until the end of the run: row-major, aligned to its elements.
  void set_input(std::string_view name, DType dtype, const Shape& shape, const void* data);

  // On the inputs that were set; they stay for the next run.
  void run();
  // Of the last run, row-major. One that is an input, or a view of one, shares its memory.
  const Tensor& output(std::string_view name) const;

 private:
  Model model_;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace oar

// Branches and loops on the values of tensors. Eagerly the functions are simply called. In a capture
// they are captured whole, as regions of one instruction, so the program has every path of a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oar/autograd/record.h"
#include "oar/base/api.h"

namespace OAR_API oar {

using Branch = std::function<std::vector<Tensor>()>;

// The results of the branch with this index, or of the last one if the index is out of range.
std::vector<Tensor> switch_case(const Tensor& index, const std::vector<Branch>& branches);
// … of `yes` if pred, one bool, is true. Without a `no`, `yes` must return nothing: it is called
// for what it writes.
std::vector<Tensor> cond(const Tensor& pred, const Branch& yes, const Branch& no = {});

using LoopTest = std::function<Tensor(const std::vector<Tensor>& variables)>;
using LoopBody = std::function<std::vector<Tensor>(const std::vector<Tensor>& variables)>;

// The variables after as many iterations as the test allows. They keep their dtypes and
// numbers of axes; their sizes may change.
std::vector<Tensor> while_loop(const LoopTest& test, const LoopBody& body,
                               std::vector<Tensor> variables);

// Iterates over the rows of the sequences. The body takes the carried tensors and one row of each sequence;
// it returns the carried tensors and any others, which are stacked.
std::vector<Tensor> scan(const LoopBody& body, const std::vector<Tensor>& carried,
                         const std::vector<Tensor>& sequences, bool reverse = false);

// A function with its own derivative, like autograd's custom_function. Inside a branch or loop, which is
// differentiated by its program, the derivative is captured with it.
std::vector<Tensor> with_derivative(TensorList inputs, const CustomForward& forward,
                                    const CustomBackward& backward, const std::string& name);

// The number that decides: an index, or whether one value is true. Looks through the tangents of jvp.
int64_t choice_of(const Tensor& t);

}  // namespace oar
